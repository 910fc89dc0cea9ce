"""How one document is to be cut, as its request says: checked before anything is stored."""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.api.dependencies import Access
from app.api.json_body import parse_json
from app.api.problems import validation_problem
from app.api.schemas.chunking import ChunkingSettings
from app.api.schemas.documents import DocumentBody
from app.domain import ChunkingOptions
from app.ingestion.chunkers.options import check_chunking, completed_chunking
from app.ingestion.submission import chunking_of

_CHUNKING = TypeAdapter(ChunkingSettings)
QUERY = "query:chunking"


def own_chunking(access: Access, given: ChunkingSettings | None, pointer: str) -> dict[str, Any] | None:
    """Return a document's own chunking complete, or `None` where it follows its collection.

    Raises `InvalidRequest` that points below `pointer`, also where the collection leaves the chunks to its documents.
    """
    own = None if given is None else completed_chunking(given.given(), pointer)
    chunking = chunking_of(access.collection, own)
    if own is not None or chunking["strategy"] == "custom":
        check_chunking(ChunkingOptions(**chunking), access.embedder.window_tokens, pointer)
    return own


def body_chunking(access: Access, body: DocumentBody, prefix: str = "") -> dict[str, Any] | None:
    """Return the chunking of a document sent as JSON, whose `chunks` may stand beside its text."""
    if body.chunks is None:
        return own_chunking(access, body.chunking, f"{prefix}/chunking")
    settings = ChunkingSettings(strategy="custom", chunks=body.chunks)
    chunking = completed_chunking(settings.given())
    check_chunking(ChunkingOptions(**chunking), access.embedder.window_tokens, prefix)
    return chunking


def query_chunking(access: Access, raw: str | None) -> dict[str, Any] | None:
    """Return the chunking that a query parameter holds as JSON."""
    if raw is None:
        return own_chunking(access, None, QUERY)
    given = parse_json(raw.encode("utf-8", "surrogatepass"), QUERY)
    try:
        settings = _CHUNKING.validate_python(given)
    except ValidationError as error:
        raise validation_problem(error.errors(), given, QUERY) from None
    return own_chunking(access, settings, QUERY)
