"""The body of every error (RFC 9457)."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from app.api.schemas.strict import Reply


class ProblemField(Reply):
    """One wrong value of the request."""

    pointer: str = Field(description="JSON pointer into the body, or `query:`, `header:` or `path:` and a name")
    code: str
    detail: str


class Problem(Reply):
    """What went wrong, where, and what to do next. The same object stands in `job.error` and in items of a batch."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:footnote:problem:unknown_field",
                    "title": "A name is not known",
                    "status": 422,
                    "detail": "`filters` is not known here; did you mean `filter`?",
                    "code": "unknown_field",
                    "instance": "/v1/collections/handbook/search",
                    "request_id": "req_2f6c1d0b9a8e4f37",
                    "errors": [
                        {
                            "pointer": "/filters",
                            "code": "unknown_field",
                            "detail": "`filters` is not known here; did you mean `filter`?",
                        }
                    ],
                }
            ]
        },
    )

    type: str
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable name of this kind of error")
    instance: str | None = None
    request_id: str | None = None
    hint: str | None = None
    errors: Annotated[list[ProblemField] | None, Field(description="Each wrong value")] = None

    @model_serializer(mode="wrap")
    def leave_out_what_is_absent(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return the members that say something."""
        return {name: value for name, value in serialize(self).items() if value is not None}
