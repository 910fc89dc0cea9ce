from dataclasses import fields

import pytest

from app.domain import ChunkingOptions
from app.errors import InvalidRequest, UnknownField
from app.ingestion.chunkers.options import check_chunking, check_collection_chunking, completed_chunking
from app.ingestion.chunkers.registry import CHUNKERS


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"size": 5, "overlap": 5}, "/chunking/overlap"),
        ({"size": 5, "overlap": 9}, "/chunking/overlap"),
        ({"overlap": -1}, "/chunking/overlap"),
        ({"size": 0}, "/chunking/size"),
        ({"size": 600, "unit": "tokens"}, "/chunking/size"),
        ({"strategy": "tokens", "size": 600}, "/chunking/size"),
        ({"strategy": "fixed", "size": 5, "overlap": 5}, "/chunking/overlap"),
        ({"strategy": "parent_child", "size": 513}, "/chunking/size"),
        ({"strategy": "parent_child", "size": 400, "parent_size": 399}, "/chunking/parent_size"),
        ({"strategy": "code", "language": "klingon"}, "/chunking/language"),
        ({"strategy": "records", "records": 0}, "/chunking/records"),
        ({"strategy": "custom"}, "/chunking/chunks"),
        ({"strategy": "custom", "chunks": [{"start": 4, "end": 4}]}, "/chunking/chunks/0/end"),
        ({"strategy": "custom", "chunks": [{"text": " \n"}]}, "/chunking/chunks/0/text"),
        ({"strategy": "custom", "chunks": [{"text": "a", "start": 0, "end": 1}]}, "/chunking/chunks/0"),
        ({"strategy": "custom", "chunks": [{"start": 0}]}, "/chunking/chunks/0"),
        (
            {"strategy": "custom", "chunks": [{"start": 0, "end": 9}, {"start": 8, "end": 12}]},
            "/chunking/chunks/1/start",
        ),
    ],
)
def test_a_wrong_value_is_pointed_at(given, pointer):
    with pytest.raises(InvalidRequest) as refused:
        check_chunking(ChunkingOptions(**completed_chunking(given)), 512)
    assert [error.pointer for error in refused.value.errors] == [pointer]


def test_an_unknown_strategy_names_those_there_are():
    with pytest.raises(UnknownField, match="auto, recursive, markdown") as refused:
        completed_chunking({"strategy": "recursiv"})
    assert refused.value.hint == "did you mean recursive?"
    assert refused.value.errors[0].pointer == "/chunking/strategy"


@pytest.mark.parametrize(
    ("given", "pointers"),
    [
        ({"strategy": "none", "size": 500}, ["/chunking/size"]),
        ({"strategy": "records", "size": 500, "overlap": 5}, ["/chunking/size", "/chunking/overlap"]),
        ({"strategy": "tokens", "unit": "characters"}, ["/chunking/unit"]),
        ({"strategy": "recursive", "language": "python"}, ["/chunking/language"]),
        ({"threshold": 0.5}, ["/chunking/threshold"]),
        ({"strategy": "semantic", "threshold": 0.5, "percentile": 90.0}, ["/chunking/threshold"]),
        ({"strategy": "parent_child", "mode": "document", "parent_size": 900}, ["/chunking/parent_size"]),
        ({"strategy": "html", "chunks": []}, ["/chunking/chunks"]),
    ],
)
def test_a_field_that_the_strategy_does_not_read_is_refused(given, pointers):
    with pytest.raises(InvalidRequest) as refused:
        completed_chunking(given)
    assert [error.pointer for error in refused.value.errors] == pointers


def test_pointers_begin_where_the_options_stand():
    with pytest.raises(InvalidRequest) as refused:
        completed_chunking({"strategy": "none", "size": 1}, "/documents/3/chunking")
    assert refused.value.errors[0].pointer == "/documents/3/chunking/size"


def test_what_is_stored_is_complete_and_nothing_else():
    assert completed_chunking({}) == {"strategy": "auto", "size": 1200, "overlap": 0, "unit": "characters"}
    assert completed_chunking({"strategy": "none"}) == {"strategy": "none"}
    assert completed_chunking({"strategy": "semantic"})["percentile"] == 90.0
    assert "percentile" not in completed_chunking({"strategy": "semantic", "threshold": 0.4})
    for strategy in CHUNKERS:
        complete = completed_chunking({"strategy": strategy})
        assert completed_chunking(complete) == complete


@pytest.mark.parametrize("strategy", CHUNKERS)
def test_the_defaults_of_every_strategy_can_work(strategy):
    assert CHUNKERS[strategy].fields.keys() <= {field.name for field in fields(ChunkingOptions)}
    check_collection_chunking(completed_chunking({"strategy": strategy}), 512)


def test_the_chunks_of_custom_belong_to_documents():
    chunking = completed_chunking({"strategy": "custom", "chunks": [{"text": "a"}]})
    check_chunking(ChunkingOptions(**chunking), 512)
    with pytest.raises(InvalidRequest, match="belong to one document"):
        check_collection_chunking(chunking, 512)


@pytest.mark.parametrize(
    "options",
    [
        ChunkingOptions(),
        ChunkingOptions(strategy="markdown", size=5, overlap=4),
        ChunkingOptions(size=100_000),
        ChunkingOptions(size=512, unit="tokens"),
    ],
)
def test_what_can_work_is_accepted(options):
    check_chunking(options, 512)
