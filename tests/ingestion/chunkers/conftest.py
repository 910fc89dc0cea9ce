import pytest

from app.domain import Extraction, Heading, Page
from app.ingestion.loaders.markdown import headings as markdown_headings

CONTROL_TOKENS = 4


def count_by_words(text):
    """A model with one token for three letters of a word, one for any other character, and four of its own."""
    words = text.split()
    return CONTROL_TOKENS + sum(-(-len(word) // 3) if word.isascii() else len(word) for word in words)


@pytest.fixture
def count_tokens():
    return count_by_words


@pytest.fixture
def plain():
    def make(text, headings=(), pages=()):
        return Extraction(
            text=text,
            parser="text",
            media_type="text/plain",
            source_type="text",
            headings=tuple(Heading(*heading) for heading in headings),
            pages=tuple(Page(*page) for page in pages),
        )

    return make


@pytest.fixture
def markdown():
    def make(text):
        return Extraction(
            text=text,
            parser="markdown",
            media_type="text/markdown",
            source_type="markdown",
            headings=tuple(markdown_headings(text)),
        )

    return make
