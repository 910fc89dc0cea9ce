import pytest

from app.domain import ChunkingOptions, Extraction
from app.errors import DocumentLimitExceeded, EmptyDocument
from app.ingestion.cut import cut


def count_characters(text):
    return 4 + len(text)


def extraction(text):
    return Extraction(text=text, parser="text", media_type="text/plain", source_type="text")


def test_chunks_say_where_they_stand_and_stay_within_the_window():
    chunks = cut(extraction("今天讨论了部署方案。" * 100), "会议", ChunkingOptions(), count_characters, 100, 1000)
    assert {chunk.context for chunk in chunks} == {"会议"}
    assert all(count_characters(chunk.indexed_text) <= 100 for chunk in chunks)
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))


def test_white_space_is_an_empty_document():
    with pytest.raises(EmptyDocument):
        cut(extraction(" \n\n "), "title", ChunkingOptions(), count_characters, 512, 10)


def test_too_many_chunks_are_refused_before_they_are_made():
    counted = 0

    def counting(text):
        nonlocal counted
        counted += len(text)
        return count_characters(text)

    with pytest.raises(DocumentLimitExceeded, match="10 chunks") as refused:
        cut(extraction("word " * 1_000_000), "title", ChunkingOptions(size=10), counting, 512, 10)
    assert "FOOTNOTE_MAX_CHUNKS" in refused.value.hint
    assert counted < 10_000
    text = "word " * 20
    assert len(cut(extraction(text), "title", ChunkingOptions(size=10), count_characters, 512, 10)) == 10
