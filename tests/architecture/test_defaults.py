"""What bodies declare by themselves, for the specification's sake, is what the verbs below do."""

from dataclasses import asdict, fields
from typing import Any, get_args

import pytest

from app.answering.ask import AskOptions
from app.answering.prompts import TEMPLATES
from app.api.schemas.ask import AskRequest
from app.api.schemas.chunking import ChunkingSettings
from app.api.schemas.documents import MEDIA_TYPES, DocumentBody
from app.api.schemas.search_options import (
    DiversitySettings,
    ExpandSettings,
    RerankSettings,
    SearchOptions,
    TransformSettings,
)
from app.domain import ChunkingOptions
from app.ingestion.chunkers.registry import CHUNKERS
from app.ingestion.registry import LOADERS
from app.retrieval.plan import (
    DiversityOptions,
    ExpandOptions,
    RerankOptions,
    SearchPlan,
    TransformOptions,
)


def test_chunking_defaults_and_strategies_are_those_of_the_chunkers() -> None:
    assert ChunkingSettings().given() == {"strategy": ChunkingOptions().strategy}
    assert get_args(ChunkingSettings.model_fields["strategy"].annotation) == tuple(CHUNKERS)
    assert ChunkingSettings.model_fields.keys() == {field.name for field in fields(ChunkingOptions)}


@pytest.mark.parametrize("name", sorted(SearchOptions.model_fields))
def test_search_defaults_are_those_of_the_plan(name: str) -> None:
    declared = getattr(SearchOptions(), name)
    # What is not given is left to the plan, whose default needs no place in the body.
    assert declared is None or declared == getattr(SearchPlan("query"), name)


def test_a_body_declares_every_option_of_a_plan() -> None:
    # What the collection and the key say is not the request's to say.
    given = {"query", "vocabulary", "max_age", "is_narrowed", "is_rerank_optional", "limits", "notices"}
    assert SearchOptions.model_fields.keys() == {field.name for field in fields(SearchPlan)} - given


@pytest.mark.parametrize(
    ("declared", "options"),
    [
        (RerankSettings, RerankOptions),
        (DiversitySettings, DiversityOptions),
        (TransformSettings, TransformOptions),
        (ExpandSettings, ExpandOptions),
    ],
)
def test_every_member_of_an_option_is_declared_with_its_default(declared: Any, options: Any) -> None:
    said = declared().model_dump(by_alias=True, exclude_none=True)
    said |= {"relevance": said.pop("lambda")} if "lambda" in said else {}
    assert {**asdict(options()), **said} == asdict(options())
    assert len(declared.model_fields) == len(fields(options))


@pytest.mark.parametrize("name", [field.name for field in fields(AskOptions)])
def test_ask_defaults_are_those_of_the_verb(name: str) -> None:
    assert getattr(AskRequest(question="why"), name) == getattr(AskOptions(), name)


def test_every_template_can_be_asked_for() -> None:
    assert set(get_args(AskRequest.model_fields["template"].annotation)) == set(TEMPLATES)


def test_every_format_of_a_text_has_a_loader() -> None:
    assert set(MEDIA_TYPES.values()) <= LOADERS.keys()
    formats, _ = get_args(DocumentBody.model_fields["format"].annotation)
    assert set(get_args(formats)) == set(MEDIA_TYPES)
