"""Probes: whether the process answers, and whether it can serve."""

import anyio
from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request, Response

from app.api.declared import problems
from app.api.replies import reply
from app.api.schemas.health import Alive, Readiness
from app.api.strict_route import StrictRoute
from app.errors import FootnoteError

PROBE_SECONDS = 2.0

router = APIRouter(route_class=StrictRoute, tags=["service"])


@router.get("/livez", operation_id="service.livez", summary="Whether the process answers", responses=problems(422))
async def livez() -> Alive:
    """Answer at once, without a key, a thread or a lock."""
    return Alive()


@router.get(
    "/readyz",
    operation_id="service.readyz",
    summary="Whether requests can be served",
    response_model=Readiness,
    responses=problems(422) | {503: {"model": Readiness, "description": "A part does not answer"}},
)
async def readyz(request: Request) -> Response:
    """Answer, without a key, what each part says of itself."""
    state = request.app.state
    checks: dict[str, str] = {"catalog": "no answer", **state.worker.checks()}
    try:
        with anyio.move_on_after(PROBE_SECONDS):
            # A probe waits for no thread that requests use up.
            checks |= await to_thread.run_sync(state.services.ready, abandon_on_cancel=True, limiter=CapacityLimiter(1))
    except FootnoteError as error:
        checks["catalog"] = error.code
    is_ready = all(word == "ok" for word in checks.values())
    return reply(Readiness(ready=is_ready, checks=checks), 200 if is_ready else 503)
