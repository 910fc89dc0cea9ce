"""The OpenAPI 3.1 document, made from the routes; it needs no running service."""

from functools import cache
from importlib.metadata import version
from typing import Any

from fastapi.openapi.utils import get_openapi

from app.api.router import router
from app.api.schemas.problem import Problem
from app.filters import Operator
from app.stores.filters import RESERVED_FIELDS

_REFERENCE = "#/components/schemas/{model}"
_FILTER = {"$ref": "#/components/schemas/Filter"}

_DESCRIPTION = (
    "Documents in, cited answers out. Every error is `application/problem+json`, every answer has `X-Request-ID`, "
    "lists take `limit` and `cursor`, and long work is a job that `Prefer: wait=N` waits for."
)

_TAGS = {
    "collections": "A collection is one tenant: its documents, its settings, its keys.",
    "documents": "Put, read, change and delete documents.",
    "chunks": "See how texts are cut before they are put.",
    "sources": "URLs that documents come from, fetched again when it is time.",
    "jobs": "Long work.",
    "search": "Find passages.",
    "ask": "Answer questions from passages.",
    "queries": "What a collection was asked lately.",
    "keys": "Who may do what.",
    "webhooks": "Be told when documents are ready and jobs end.",
    "service": "Probes, metrics, this document.",
}


def _combination(name: str, inner: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "title": name.capitalize(),
        "properties": {name: inner},
        "required": [name],
        "additionalProperties": False,
    }


_FILTER_SCHEMA: dict[str, Any] = {
    "title": "Filter",
    "description": "A condition on a metadata field, or filters joined by `and`, `or`, `not`.",
    "oneOf": [
        {
            "type": "object",
            "title": "Condition",
            "properties": {
                "field": {"type": "string", "description": f"A metadata field, or {', '.join(RESERVED_FIELDS)}"},
                "op": {"type": "string", "enum": [operator.value for operator in Operator]},
                "value": {"description": "What `op` compares the field with"},
            },
            "required": ["field", "op", "value"],
            "additionalProperties": False,
        },
        _combination("and", {"type": "array", "items": _FILTER}),
        _combination("or", {"type": "array", "items": _FILTER}),
        _combination("not", _FILTER),
    ],
    "examples": [
        {"and": [{"field": "team", "op": "eq", "value": "hr"}, {"field": "year", "op": "gte", "value": 2024}]}
    ],
}


@cache
def openapi_document() -> dict[str, Any]:
    """Return the document; callers must not change it."""
    document = get_openapi(
        title="Footnote",
        version=version("footnote"),
        openapi_version="3.1.0",
        description=_DESCRIPTION,
        routes=router.routes,
        tags=[{"name": name, "description": description} for name, description in _TAGS.items()],
        license_info={"name": "MIT", "identifier": "MIT"},
    )
    schemas = document["components"]["schemas"]
    problem = Problem.model_json_schema(ref_template=_REFERENCE)
    schemas.update(problem.pop("$defs", {}))
    schemas["Problem"] = problem
    for model in ("HTTPValidationError", "ValidationError"):
        schemas.pop(model, None)
    referred: dict[str, Any] = _refer_to_filter(document)
    referred["components"]["schemas"]["Filter"] = _FILTER_SCHEMA
    return referred


def _refer_to_filter(value: Any) -> Any:
    """Replace each place that says it is a filter by a reference, which pydantic cannot make to a schema of ours."""
    if isinstance(value, list):
        return [_refer_to_filter(member) for member in value]
    if not isinstance(value, dict):
        return value
    if value.get("title") == "Filter" and value.get("type") == "object":
        kept = {name: value[name] for name in ("description",) if name in value}
        return _FILTER | kept
    return {name: _refer_to_filter(member) for name, member in value.items()}
