"""Make a file ready for embedding: detect, load, clean, cut, contextualize. Runs in the process that parses."""

from dataclasses import replace

from app.domain import Extraction, Notice
from app.errors import UnsupportedMediaType
from app.inference.token_counter import load_token_counter
from app.ingestion.alignment import boundaries
from app.ingestion.attached import with_usable_attachments
from app.ingestion.cleaning import clean
from app.ingestion.cut import cut
from app.ingestion.detection import detect
from app.ingestion.media_types import READ
from app.ingestion.port import Prepared, PrepareRequest, Source
from app.ingestion.registry import LOADERS
from app.telemetry import StageTimer


class Listener:
    """Hear how a document's preparation goes; this one hears nothing."""

    def allow_pages(self, pages: int) -> None:
        """Take note of how many pages take the time of recognition."""

    def stage(self, name: str) -> None:
        """Take note of a stage that begins."""

    def pages(self, done: int, total: int) -> None:
        """Take note of how many pages of how many are read."""


NOBODY = Listener()


def prepare(request: PrepareRequest, listener: Listener = NOBODY) -> Prepared:
    """Return a document's text and its chunks; raises the error that says why there are none."""
    timer = StageTimer()
    with timer.stage("load"):
        extraction = load(request, listener)
    listener.stage("clean")
    with timer.stage("clean"):
        extraction = clean(extraction, request.normalisation)
    listener.stage("chunk")
    with timer.stage("chunk"):
        told: list[Notice] = []
        known = boundaries(extraction.text, request.known, request.chunking.size)
        chunks = cut(
            replace(extraction, boundaries=known, tell=told.append),
            request.title or extraction.title or request.filename or "",
            request.chunking,
            load_token_counter(request.token_counter),
            request.window_tokens,
            request.limits.max_chunks,
            request.contexts,
        )
    extraction = replace(extraction, warnings=(*extraction.warnings, *told))
    timings = timer.milliseconds()
    return Prepared(extraction, chunks, {stage: timings[stage] for stage in ("load", "clean", "chunk")})


def load(request: PrepareRequest, listener: Listener = NOBODY) -> Extraction:
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
        allow_pages=listener.allow_pages,
        tell_pages=listener.pages,
    )
    extraction = loader(source)
    if extraction.attachments:
        extraction = with_usable_attachments(extraction, request)
    return replace(extraction, warnings=(*detected.notices, *extraction.warnings))
