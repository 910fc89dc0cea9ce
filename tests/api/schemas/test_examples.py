import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

import app.api.router  # noqa: F401 - defines every body
from app.api.schemas.examples import ASK
from app.api.schemas.strict import Reply, Request


def bodies(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for below in model.__subclasses__():
        yield below
        yield from bodies(below)


def examples() -> list[tuple[type[BaseModel], Any]]:
    return [
        (model, example)
        for model in sorted({*bodies(Request), *bodies(Reply)}, key=lambda found: found.__name__)
        for example in (model.model_config.get("json_schema_extra") or {}).get("examples", [])  # type: ignore[union-attr]
    ]


@pytest.mark.parametrize(("model", "example"), examples(), ids=lambda value: getattr(value, "__name__", ""))
def test_an_example_is_what_it_is_an_example_of(model: type[BaseModel], example: Any) -> None:
    if issubclass(model, Request):
        model.model_validate(example)
        return
    rendered = model.model_validate_json(json.dumps(example)).model_dump(mode="json")
    assert rendered == example


def test_citations_and_passages_of_the_examples_stand_where_they_say() -> None:
    (citation,), (source,) = ASK["citations"], ASK["sources"]
    quoted = source["text"][citation["start"] - source["start"] : citation["end"] - source["start"]]
    assert quoted == citation["quote"]
    assert source["end"] - source["start"] == len(source["text"])
    assert citation["answer_span"] == {"start": 0, "end": len(ASK["answer"])}
