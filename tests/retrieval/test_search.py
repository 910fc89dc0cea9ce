"""Searches over real stores and indexes: both legs, their failures, filters, and queries of every shape."""

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain import LegScore
from app.embedding_space import EmbeddingSpace
from app.errors import (
    EmbeddingModelMismatch,
    EmbeddingUnavailable,
    StoreBusy,
    Unavailable,
    UpstreamAuthentication,
)
from app.filters import Condition, Operator
from app.inference.embedders.hashed import HashedEmbedder
from app.retrieval.fusion import automatic_keyword_weight
from app.retrieval.plan import LegWeights, RankFusion, RelativeFusion, ScoreFusion

LEAVE = "Each parent may take 320 working days of parental leave."
TRAVEL = "Travel expenses are paid within ten days."
COFFEE = "The kitchen has coffee and tea for everybody."
MODES = ("dense", "keyword", "hybrid")


class FailingLeg:
    """A leg of an index that raises what it is told."""

    def __init__(self, leg: Any, failure: Exception) -> None:
        self._leg, self._failure = leg, failure

    def search(self, *_arguments: Any) -> Any:
        raise self._failure

    def __getattr__(self, name: str) -> Any:
        return getattr(self._leg, name)


def fill(shelf) -> None:
    shelf.put("leave", LEAVE)
    shelf.put("travel", TRAVEL)
    shelf.put("coffee", COFFEE)


def break_keywords(shelf, failure: Exception) -> None:
    index = shelf.opened.index
    shelf.opened.index = replace(index, keyword=FailingLeg(index.keyword, failure))


@pytest.mark.parametrize("mode", MODES)
def test_the_passage_that_shares_the_querys_words_comes_first(shelf, mode) -> None:
    fill(shelf)
    assert shelf.find("how many days of parental leave", mode=mode)[0] == "leave"


@pytest.mark.parametrize("mode", MODES)
def test_chinese_words_are_found_inside_a_sentence(shelf, mode) -> None:
    shelf.put("zh", "今天讨论了部署方案。")
    shelf.put("other", "明天没有会议。")
    assert shelf.find("部署", mode=mode)[0] == "zh"


def test_a_passage_tells_where_it_is_and_what_each_leg_said(shelf) -> None:
    shelf.put("two", COFFEE, LEAVE, team="hr")
    shelf.put("travel", TRAVEL)
    result = shelf.search("parental leave", top_k=1)
    [passage] = result.passages
    assert (passage.rank, passage.document_id, passage.collection, passage.title) == (1, "two", "shelf", "two")
    assert (passage.text, passage.start, passage.end) == (LEAVE, len(COFFEE) + 1, len(COFFEE) + 1 + len(LEAVE))
    assert passage.metadata == {"team": "hr"}
    assert passage.found_by == ("dense", "keyword")
    embedder = HashedEmbedder()
    cosine = float(embedder.embed_queries(["parental leave"])[0] @ embedder.embed_passages([LEAVE])[0])
    assert passage.legs["dense"].score == pytest.approx(cosine, abs=1e-6)
    assert (passage.legs["dense"].rank, passage.legs["keyword"].rank) == (1, 1)
    assert passage.fused == passage.score == pytest.approx(1.0)
    assert passage.score_type == "relative"
    assert (result.queries_used, result.mode, result.degraded, result.warnings) == (
        ("parental leave",),
        "hybrid",
        (),
        (),
    )
    assert set(result.timings_ms) == {"embed", "dense", "keyword", "fuse", "hydrate", "total"}
    assert set(result.term_weights) == {"parent", "leav"}


def test_a_single_leg_is_ordered_by_its_own_score(shelf) -> None:
    fill(shelf)
    for mode, score_type in (("dense", "dense"), ("keyword", "bm25")):
        first = shelf.search("coffee for everybody", mode=mode).passages[0]
        assert (first.document_id, first.score_type, first.fused) == ("coffee", score_type, None)
        assert first.legs == {mode: LegScore(first.score, 1)}


def test_the_keyword_leg_holds_no_hit_without_a_term_of_the_query(shelf) -> None:
    fill(shelf)
    assert shelf.find("coffee", mode="keyword") == ["coffee"]
    found = {passage.document_id: passage.found_by for passage in shelf.search("coffee").passages}
    assert found == {"coffee": ("dense", "keyword"), "leave": ("dense",), "travel": ("dense",)}


@pytest.mark.parametrize("mode", MODES)
def test_a_filter_applies_before_ranking(shelf, mode) -> None:
    for number in range(120):
        shelf.put(f"d{number:03}", f"annual report number {number}", lang="fi" if number % 24 == 0 else "en")
    only_finnish = Condition("lang", Operator.EQ, "fi")
    found = shelf.find("annual report", mode=mode, candidates=5, search_filter=only_finnish)
    assert sorted(found) == ["d000", "d024", "d048", "d072", "d096"]


@pytest.mark.parametrize("mode", MODES)
def test_only_the_documents_that_are_named_are_searched(shelf, mode) -> None:
    fill(shelf)
    assert shelf.find("days of leave", mode=mode, document_ids=["travel", "unknown"]) == ["travel"]
    assert shelf.find("days of leave", mode=mode, document_ids=[]) == []


def test_a_warning_of_the_filter_reaches_the_caller(shelf) -> None:
    fill(shelf)
    result = shelf.search("leave", search_filter=Condition("nobody_has_it", Operator.EQ, 1))
    assert [warning.code for warning in result.warnings] == ["unknown_metadata_field"]
    assert result.passages == ()


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_collection_answers_with_nothing_and_embeds_nothing(shelf, mode) -> None:
    result = shelf.search("anything", mode=mode)
    assert (result.passages, result.degraded, shelf.embedder.calls) == ((), (), 0)


@pytest.mark.parametrize("failure", [EmbeddingUnavailable("no answer"), UpstreamAuthentication("key refused")])
def test_without_its_embedder_a_hybrid_search_is_degraded_and_a_dense_one_fails(shelf, failure) -> None:
    fill(shelf)
    shelf.embedder.failure = failure
    result = shelf.search("parental leave")
    assert [passage.document_id for passage in result.passages] == ["leave"]
    assert result.degraded == ("dense",)
    assert [warning.code for warning in result.warnings] == [failure.code]
    assert result.passages[0].found_by == ("keyword",)
    with pytest.raises(type(failure)):
        shelf.search("parental leave", mode="dense")
    assert shelf.find("parental leave", mode="keyword") == ["leave"]


def test_without_its_keywords_a_hybrid_search_is_degraded(shelf) -> None:
    fill(shelf)
    break_keywords(shelf, StoreBusy("index in use"))
    result = shelf.search("parental leave")
    assert result.degraded == ("keyword",)
    assert result.passages[0].document_id == "leave"
    with pytest.raises(StoreBusy):
        shelf.search("parental leave", mode="keyword")


def test_a_search_that_no_leg_answers_is_unavailable(shelf) -> None:
    fill(shelf)
    break_keywords(shelf, StoreBusy("index in use"))
    shelf.embedder.failure = UpstreamAuthentication("key refused")
    with pytest.raises(Unavailable):
        shelf.search("parental leave")


def test_a_fault_of_ours_is_never_taken_for_a_leg_that_does_not_answer(shelf) -> None:
    fill(shelf)
    break_keywords(shelf, KeyError("a bug"))
    with pytest.raises(KeyError):
        shelf.search("parental leave")


def test_no_leg_outlives_a_search_that_fails(shelf) -> None:
    fill(shelf)
    may_end, ended = threading.Event(), threading.Event()
    find = shelf.opened.index.keyword.search

    class SlowLeg(FailingLeg):
        def search(self, *arguments: Any) -> Any:
            may_end.wait(10)
            ended.set()
            return find(*arguments)

    index = shelf.opened.index
    shelf.opened.index = replace(index, keyword=SlowLeg(index.keyword, KeyError()))
    threading.Timer(0.1, may_end.set).start()
    with pytest.raises(EmbeddingModelMismatch):
        shelf.search("parental leave", OtherSpace())
    assert ended.is_set()


class OtherSpace(HashedEmbedder):
    space = EmbeddingSpace("hashed", "another-model", 384)


@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_another_model_than_the_collections_is_refused_with_the_way_out(shelf, mode) -> None:
    fill(shelf)
    with pytest.raises(EmbeddingModelMismatch) as caught:
        shelf.search("leave", OtherSpace(), mode=mode)
    assert "another-model" in caught.value.detail
    assert "reembed" in caught.value.hint
    assert shelf.search("leave", OtherSpace(), mode="keyword").passages


def test_a_chunk_that_is_deleted_meanwhile_gives_its_place_to_the_next(shelf) -> None:
    fill(shelf)
    store = shelf.opened.store

    class DeletesFirst:
        def found_chunks(self, keys):
            store.delete_documents(["leave"])
            return store.found_chunks(keys)

        def __getattr__(self, name):
            return getattr(store, name)

    shelf.opened.store = DeletesFirst()
    passages = shelf.search("parental leave days", top_k=2).passages
    assert [(passage.rank, passage.document_id) for passage in passages] == [(1, "travel"), (2, "coffee")]


def test_a_search_sees_what_was_written_before_it(shelf) -> None:
    shelf.put("v", "alpha")
    assert shelf.find("alpha", mode="keyword") == ["v"]
    shelf.put("v", "beta")
    assert shelf.find("alpha", mode="keyword") == []
    assert shelf.find("beta", mode="keyword") == ["v"]


@pytest.mark.parametrize("query", ["*", "🙈‼", "?!…", "()"])
def test_a_query_without_words_is_answered_by_meaning_and_says_so(shelf, query) -> None:
    fill(shelf)
    result = shelf.search(query)
    if "no_query_terms" in [warning.code for warning in result.warnings]:
        assert result.term_weights == {}
    assert len(result.passages) == 3
    assert shelf.find(query, mode="keyword") == []


@pytest.mark.parametrize(
    "query",
    [
        "ubuntu 20.04", "multi-agent", "don't", "a/b", '"unbalanced', "NEAR(", "*", "col:val", "AND OR NOT", "🦊",
        "猫", "go", "x\0y", "\ud83d tail", "text:leave^2 +(-", "' OR 1=1 --", "long words " * 900, "𠮷" * 3000,
    ],
)  # fmt: skip
def test_no_query_is_a_fault(shelf, query) -> None:
    fill(shelf)
    assert [len(shelf.find(query, mode=mode)) for mode in ("dense", "hybrid")] == [3, 3]
    assert len(shelf.find(query, mode="keyword")) <= 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(query=st.text(min_size=1, max_size=80).filter(lambda text: text.replace("\0", " ").strip()))
def test_any_text_is_a_query(shelf, query) -> None:
    if shelf.opened.store.revision() == 0:
        fill(shelf)
    assert len(shelf.search(query).passages) == 3


def test_equal_passages_keep_one_order(shelf) -> None:
    for number in range(12):
        shelf.put(f"same{number}", LEAVE)
    orders = {mode: shelf.find("parental leave", mode=mode, top_k=12) for mode in MODES}
    assert orders["dense"] == orders["keyword"] == orders["hybrid"] == [f"same{number}" for number in range(12)]


def test_fixed_weights_and_alpha_order_as_they_say(shelf) -> None:
    fill(shelf)
    keyword_only = shelf.search("coffee", fusion=RankFusion(k=60, weights=LegWeights(0, 1)))
    assert [(p.document_id, p.score) for p in keyword_only.passages] == [("coffee", pytest.approx(1 / 61))]
    weighted = shelf.search("coffee", fusion=ScoreFusion(0.5)).passages
    assert (weighted[0].document_id, weighted[0].score_type, weighted[0].score) == ("coffee", "weighted", 1.0)
    assert shelf.search("coffee", fusion=ScoreFusion("auto")).passages[0].score_type == "weighted"
    relative = shelf.search("coffee leave", fusion=RelativeFusion(0.0)).passages
    best = max(passage.legs["keyword"].score for passage in relative)
    for passage in relative:
        assert passage.score == pytest.approx(passage.legs["keyword"].score / best)


def test_keywords_vote_by_how_much_of_the_query_they_know(shelf) -> None:
    fill(shelf)
    query = "coffee xylophone quartz"
    result = shelf.search(query, fusion=RankFusion())
    idf = result.term_weights
    strength = result.passages[0].legs["keyword"].score / sum(idf.values())
    assert 0.05 < strength < 0.4
    expected = 1 / 11 + automatic_keyword_weight(strength) / 11
    assert result.passages[0].score == pytest.approx(expected)
    assert idf["xylophon"] == idf["quartz"] == pytest.approx(float(np.log(1 + 3.5 / 0.5)))
