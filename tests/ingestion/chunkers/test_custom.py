import pytest

from app.domain import ChunkingOptions
from app.errors import InvalidRequest
from app.ingestion.chunkers.custom import take_chunks

TEXT = "# One\n\nThe café opens. The café closes.\n\n# Two\n\nThe end."


@pytest.fixture
def take(markdown, count_tokens):
    def cut(chunks, text=TEXT, window=512):
        options = ChunkingOptions(strategy="custom", chunks=chunks)
        return list(take_chunks(markdown(text), options, count_tokens, window))

    return cut


def test_places_and_texts_become_chunks_with_their_headings(take):
    start = TEXT.index("The end")
    chunks = take([{"text": "The cafe\u0301 opens."}, {"start": start, "end": start + 8}])
    assert [one.text for one in chunks] == ["The café opens.", "The end."]
    assert [one.heading_path for one in chunks] == [("One",), ("Two",)]
    assert all(one.text == TEXT[one.start : one.end] for one in chunks)


def test_equal_texts_are_found_one_after_the_other(take):
    first, second = take([{"text": "The café"}, {"text": "The café"}])
    assert first.end <= second.start


def test_metadata_is_said_before_the_text(take):
    (chunk,) = take([{"text": "The end.", "metadata": {"speaker": "Ann", "minute": 4}}])
    assert chunk.indexed_text == "speaker: Ann\nminute: 4\nThe end."


@pytest.mark.parametrize(
    ("chunks", "pointer"),
    [
        ([{"start": 0, "end": 999}], "/chunking/chunks/0/end"),
        ([{"text": "The café opens."}, {"start": 9, "end": 12}], "/chunking/chunks/1/start"),
        ([{"start": 0, "end": 5}, {"start": 5, "end": 7}], "/chunking/chunks/1/start"),
        ([{"text": "The end."}, {"text": "The café"}], "/chunking/chunks/1/text"),
        ([{"text": "nowhere"}], "/chunking/chunks/0/text"),
    ],
)
def test_what_is_wrong_is_pointed_at(take, chunks, pointer):
    with pytest.raises(InvalidRequest) as refused:
        take(chunks)
    assert [error.pointer for error in refused.value.errors] == [pointer]


def test_a_chunk_above_the_window_is_refused(take):
    with pytest.raises(InvalidRequest, match="/chunking/chunks/0 has 200 tokens"):
        take([{"start": 0, "end": 599}], text="ab " * 300, window=64)
