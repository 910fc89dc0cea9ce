"""Which chunker a strategy names; apart from the loaders, so that a server which checks a name loads no parser."""

from collections.abc import Mapping

from app.ingestion.chunkers.automatic import chunk_automatically
from app.ingestion.chunkers.markdown import chunk_by_headings
from app.ingestion.chunkers.recursive import chunk_recursively
from app.ingestion.port import Chunker

CHUNKERS: Mapping[str, Chunker] = {
    "auto": chunk_automatically,
    "recursive": chunk_recursively,
    "markdown": chunk_by_headings,
}
