"""The route class of every operation: unknown query parameters are refused, JSON is read by our rules."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from app.api.json_body import JSONRequest
from app.api.schemas.strict import unknown_name
from app.bootstrap import Services
from app.errors import FieldError, UnknownField


class StrictRoute(APIRoute):
    """Refuse what the operation does not declare, before it runs."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler with the checks in front."""
        handle = super().get_route_handler()
        known = frozenset(_query_names(self.dependant))
        takes_json = self.body_field is not None

        async def strict(request: Request) -> Response:
            _refuse_unknown_parameters(request, known)
            if takes_json:
                services: Services = request.app.state.services
                body = JSONRequest(request.scope, request.receive).limited_to(services.settings.max_json_bytes)
                if await body.body():
                    body.require_json()
                    await body.json()
                request = body
            return await handle(request)

        return strict


def _query_names(dependant: Dependant) -> Iterable[str]:
    for field in dependant.query_params:
        yield field.alias
    for below in dependant.dependencies:
        yield from _query_names(below)


def _refuse_unknown_parameters(request: Request, known: frozenset[str]) -> None:
    errors = [
        FieldError(f"query:{name}", "unknown_field", unknown_name(name, known))
        for name in dict.fromkeys(request.query_params)
        if name not in known
    ]
    if errors:
        raise UnknownField(errors[0].detail, errors=errors)
