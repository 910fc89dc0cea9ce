import pytest

from app.domain import ChunkingOptions
from app.errors import DocumentLimitExceeded
from app.ingestion.chunkers.whole import leave_whole


def test_a_text_is_one_chunk(plain, count_tokens):
    chunks = list(leave_whole(plain("\n One.\n\nTwo. "), ChunkingOptions(size=2), count_tokens, 512))
    assert [one.text for one in chunks] == ["One.\n\nTwo."]


def test_a_text_above_the_window_says_so(plain, count_tokens):
    with pytest.raises(DocumentLimitExceeded, match="one chunk of 600 tokens, and the model reads 508") as refused:
        list(leave_whole(plain("猫" * 600), ChunkingOptions(), count_tokens, 512))
    assert refused.value.code == "chunk_above_window"
    assert "another chunking strategy" in refused.value.hint
