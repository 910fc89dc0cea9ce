"""Make a file ready for embedding: detect, load, clean, cut, contextualize. Runs in the process that parses."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from app.domain import Extraction
from app.errors import UnsupportedMediaType
from app.inference.token_counter import load_token_counter
from app.ingestion.alignment import boundaries
from app.ingestion.attached import with_usable_attachments
from app.ingestion.cleaning import clean
from app.ingestion.cut import cut
from app.ingestion.detection import detect
from app.ingestion.media_types import READ
from app.ingestion.port import Prepared, PrepareRequest, Source, allow_nothing
from app.ingestion.registry import LOADERS
from app.telemetry import StageTimer

_token_counter = lru_cache(maxsize=4)(load_token_counter)


def prepare(request: PrepareRequest, allow_pages: Callable[[int], None] = allow_nothing) -> Prepared:
    """Return a document's text and its chunks; raises the error that says why there are none.

    `allow_pages` is called with the number of pages that take the time of recognition.
    """
    timer = StageTimer()
    with timer.stage("load"):
        extraction = load(request, allow_pages)
    with timer.stage("clean"):
        extraction = clean(extraction, request.normalisation)
    with timer.stage("chunk"):
        chunks = cut(
            replace(extraction, boundaries=boundaries(extraction.text, request.known, request.chunking.size)),
            request.title or extraction.title or request.filename or "",
            request.chunking,
            _token_counter(request.token_counter),
            request.window_tokens,
            request.limits.max_chunks,
            request.contexts,
        )
    timings = timer.milliseconds()
    return Prepared(extraction, chunks, {stage: timings[stage] for stage in ("load", "clean", "chunk")})


def load(request: PrepareRequest, allow_pages: Callable[[int], None] = allow_nothing) -> Extraction:
    """Return what the loader for the file's kind makes of it, with a notice where its name says another kind."""
    detected = detect(request.path, request.filename, request.declared)
    loader = LOADERS.get(detected.media_type)
    if loader is None:
        raise UnsupportedMediaType(f"no loader reads {detected.media_type}; read are {READ}")
    source = Source(
        path=request.path,
        media_type=detected.media_type,
        declared=request.declared,
        filename=request.filename,
        password=request.password,
        limits=request.limits,
        allow_pages=allow_pages,
    )
    extraction = loader(source)
    if extraction.attachments:
        extraction = with_usable_attachments(extraction, request)
    return replace(extraction, warnings=(*detected.notices, *extraction.warnings))
