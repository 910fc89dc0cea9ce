"""The specification, and a page that shows it without asking any other server."""

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from app.api.declared import keyed
from app.api.dependencies import CurrentPrincipal
from app.api.strict_route import StrictRoute

PAGE = Path(__file__).parent.parent / "static" / "docs.html"
CONTENT_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'"

router = APIRouter(route_class=StrictRoute, tags=["service"])


@router.get("/openapi.json", operation_id="service.specification", summary="Fetch this document", responses=keyed())
def specification(request: Request, _principal: CurrentPrincipal) -> dict[str, Any]:
    """Answer the OpenAPI document; HTTP Basic with the key as the password is taken too."""
    document: dict[str, Any] = request.app.openapi()
    return document


@router.get(
    "/docs",
    operation_id="service.docs",
    summary="Read this document as a page",
    response_class=HTMLResponse,
    responses=keyed(),
)
def page(_principal: CurrentPrincipal) -> Response:
    """Answer the page; browsers ask for HTTP Basic: any name, and the key as the password."""
    return HTMLResponse(PAGE.read_bytes(), headers={"Content-Security-Policy": CONTENT_POLICY})
