"""Counters and gauges in Prometheus' text format, for the admin key."""

import re
import resource
import sys
from pathlib import Path

from fastapi import APIRouter, Response

from app.api.declared import keyed
from app.api.dependencies import AdminPrincipal, CurrentServices
from app.api.strict_route import StrictRoute
from app.telemetry import counters

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"

_UNFIT = re.compile(r"[^a-zA-Z0-9_]")

router = APIRouter(route_class=StrictRoute, tags=["service"])


@router.get(
    "/metrics",
    operation_id="service.metrics",
    summary="Counters of this process, for Prometheus",
    response_class=Response,
    responses=keyed(403)
    | {200: {"description": "Prometheus text", "content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(services: CurrentServices, _principal: AdminPrincipal) -> Response:
    """Answer every counter of this process, the jobs by state and the memory in use."""
    lines: list[str] = []
    for name, value in sorted(counters.snapshot().items()):
        metric = f"footnote_{_UNFIT.sub('_', name)}_total"
        lines += [f"# TYPE {metric} counter", f"{metric} {value}"]
    lines.append("# TYPE footnote_jobs gauge")
    lines += [f'footnote_jobs{{state="{state}"}} {count}' for state, count in services.jobs.counts().items()]
    lines += ["# TYPE process_resident_memory_bytes gauge", f"process_resident_memory_bytes {resident_bytes()}"]
    return Response("\n".join(lines) + "\n", media_type=TEXT_FORMAT)


def resident_bytes() -> int:
    """Return the memory this process holds now, or at its peak where the system does not tell the present."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
