"""What operations declare of their answers, so that the specification tells every status that can occur."""

from http import HTTPStatus
from typing import Any, TypeAlias

from app.api.schemas.strict import Reply

PROBLEM_REFERENCE = {"$ref": "#/components/schemas/Problem"}

Responses: TypeAlias = dict[int | str, dict[str, Any]]


def problems(*statuses: int) -> Responses:
    """Return the declaration of the errors that an operation can answer."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {"application/problem+json": {"schema": PROBLEM_REFERENCE}},
        }
        for status in sorted(set(statuses))
    }


def keyed(*statuses: int) -> Responses:
    """Return the errors of an operation that needs a key, with those that each of them can answer."""
    return problems(401, 422, 429, 503, *statuses)


def accepted(model: type[Reply], description: str) -> Responses:
    """Return the declaration of the answer while the work goes on."""
    location = {"description": "The job that does the work", "schema": {"type": "string"}}
    return {202: {"model": model, "description": description, "headers": {"Location": location}}}


def binary_body(media_type: str) -> dict[str, Any]:
    """Return the part of an operation that declares a body of bytes."""
    return {
        "requestBody": {
            "required": True,
            "content": {media_type: {"schema": {"type": "string", "format": "binary"}}},
        }
    }
