import pytest

from app.domain import ChunkingOptions
from app.errors import InvalidRequest, UnknownField
from app.ingestion.chunkers.options import check_chunking


@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        (ChunkingOptions(size=5, overlap=5), "/chunking/overlap"),
        (ChunkingOptions(size=5, overlap=9), "/chunking/overlap"),
        (ChunkingOptions(overlap=-1), "/chunking/overlap"),
        (ChunkingOptions(size=0), "/chunking/size"),
        (ChunkingOptions(size=600, unit="tokens"), "/chunking/size"),
    ],
)
def test_a_wrong_value_is_pointed_at(options, pointer):
    with pytest.raises(InvalidRequest) as refused:
        check_chunking(options, 512)
    assert [error.pointer for error in refused.value.errors] == [pointer]


def test_an_unknown_strategy_names_those_there_are():
    with pytest.raises(UnknownField, match="auto, recursive, markdown") as refused:
        check_chunking(ChunkingOptions(strategy="recursiv"), 512)
    assert refused.value.hint == "did you mean recursive?"
    assert refused.value.errors[0].pointer == "/chunking/strategy"


@pytest.mark.parametrize(
    "options",
    [
        ChunkingOptions(),
        ChunkingOptions(strategy="markdown", size=5, overlap=4),
        ChunkingOptions(size=100_000),
        ChunkingOptions(size=512, overlap=100, unit="tokens"),
    ],
)
def test_what_can_work_is_allowed(options):
    check_chunking(options, 512)
