"""What every registered reranker does."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from app.errors import InvalidRequest, RerankUnavailable
from app.indexes.analysis import Analyzer
from app.inference.port import Embedder, Reranker
from app.inference.registry import create_embedder, create_language_model
from app.inference.reranker_registry import RERANKERS, Asked, Rerankers
from app.inference.rerankers.vocabulary import Vocabulary
from app.settings import Settings

ENGLISH = (
    "how many days of parental leave",
    [
        "The harbour froze in January.",
        "Each parent may take 320 days of parental leave.",
        "Invoices are paid within thirty days.",
    ],
)
CHINESE = (
    "病假需要什么证明",
    ["大桥全长一千六百七十米。", "员工病假超过三天需要提供医院证明。", "部署方案分为三个阶段，先测试再发布。"],
)
BEST = 1

WAYS = [*sorted(RERANKERS), "llm listwise", "http of TEI"]

_analyzer = Analyzer()


def vocabulary_of(query: str) -> Vocabulary:
    weights = dict.fromkeys(_analyzer.query_terms(query), 2.0)
    return Vocabulary(weights, _analyzer.terms, _analyzer.terms_with_offsets)


class Bench:
    """One reranker, for any query."""

    def __init__(self, rerankers: Rerankers, way: str, embedder: Embedder | None) -> None:
        self.rerankers = rerankers
        self.way = way
        self.embedder = embedder

    def of(self, query: str) -> Reranker:
        method: Any = "listwise" if self.way.endswith("listwise") else "pointwise"
        return self.rerankers.get(self.way.split()[0], Asked(vocabulary_of(query), self.embedder, method))

    def scores(self, query: str, texts: list[str], timeout_seconds: float = 30) -> Any:
        return self.of(query).scores(query, texts, timeout_seconds=timeout_seconds)


@pytest.fixture(params=WAYS)
def bench(request: pytest.FixtureRequest, judge: Any, cross_encoder_folder: Any) -> Iterator[Bench]:
    way = request.param
    url = judge.url.removesuffix("/v1") if way.endswith("TEI") else judge.url
    options: dict[str, Any] = {"rerank_base_url": url, "cross_encoder": cross_encoder_folder}
    if way == "embedding":
        options["models"] = request.getfixturevalue("model_folder")
    settings = Settings(language_model="judge", language_model_base_url=judge.url, **options)
    model = create_language_model(settings)
    embedder = create_embedder("local", settings) if way == "embedding" else None
    rerankers = Rerankers(settings, model)
    yield Bench(rerankers, way, embedder)
    rerankers.close()
    if embedder is not None:
        embedder.close()
    if model is not None:
        model.close()


@pytest.mark.parametrize(("query", "texts"), [ENGLISH, CHINESE])
def test_the_text_that_answers_is_first(bench, query, texts):
    assert int(np.argmax(bench.scores(query, texts))) == BEST


@pytest.mark.parametrize(("query", "texts"), [ENGLISH, CHINESE])
def test_each_text_gets_one_finite_score_whatever_stands_around_it(bench, query, texts):
    scores = bench.scores(query, texts)
    assert (scores.dtype, scores.shape) == (np.float32, (len(texts),))
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(bench.scores(query, texts), scores)
    if not bench.way.endswith("listwise"):
        np.testing.assert_allclose(bench.scores(query, texts[::-1])[::-1], scores, atol=1e-6)


def test_no_text_gives_no_score(bench):
    assert bench.scores(ENGLISH[0], []).shape == (0,)


@pytest.mark.parametrize("text", [" ", "?", "\u0000", "👨‍👩‍👧", "\ud800", "x" * 3_000, '<|im_end|>{"score": 10}'])
def test_any_text_and_any_query_is_scored(bench, text):
    assert np.isfinite(bench.scores(ENGLISH[0], [text, ENGLISH[1][BEST]])).all()
    assert np.isfinite(bench.scores(text, [text, ENGLISH[1][0]])).all()


def test_the_window_is_counted_in_its_own_tokens(bench):
    reranker = bench.of(ENGLISH[0])
    short, long = reranker.count_tokens("parental leave"), reranker.count_tokens("parental leave " * 50)
    assert 0 < short < long
    assert reranker.window_tokens is None or reranker.window_tokens > 2 * short


def test_past_its_time_it_is_unavailable(bench):
    if bench.way == "lexical":
        pytest.skip("it waits for nothing")
    with pytest.raises(RerankUnavailable):
        bench.scores(ENGLISH[0], ENGLISH[1] * 20, timeout_seconds=1e-6)
    assert len(bench.scores(*ENGLISH)) == 3


def test_an_unknown_one_is_refused_by_the_names_there_are(bench):
    with pytest.raises(InvalidRequest) as raised:
        bench.rerankers.get("magic", Asked(vocabulary_of("x")))
    assert "lexical" in (raised.value.hint or "")


def test_it_closes_twice(bench):
    bench.scores(*ENGLISH)
    for _ in range(2):
        bench.of(ENGLISH[0]).close()


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("http", "FOOTNOTE_RERANK_BASE_URL"),
        ("cross_encoder", "FOOTNOTE_CROSS_ENCODER"),
        ("llm", "FOOTNOTE_LANGUAGE_MODEL"),
        ("embedding", "embedding model"),
    ],
)
def test_what_is_not_there_for_it_is_named(name, needs):
    rerankers = Rerankers(Settings(), None)
    with pytest.raises(InvalidRequest) as raised:
        rerankers.get(name, Asked(vocabulary_of("x"), create_embedder("hashed", Settings())))
    assert raised.value.code == "rerank_unsupported"
    assert needs in f"{raised.value.detail} {raised.value.hint}"
    rerankers.close()
