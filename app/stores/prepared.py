"""A version of a document, made and embedded, as a store is given it to write."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from app.domain import Chunk, Metadata, Notice, Page, text_hash
from app.embedding_space import EmbeddingSpace


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """Everything that `replace_document` writes; `vectors` is float32, one row per child, of its indexed text.

    `content_vectors` are those of the children's clean texts where indexing is `enhanced`, else `None`. The collection
    may hold `most_chunks`. `registration` is what `register_document` returned: the write is refused with `Cancelled`
    when the document was deleted meanwhile, also if one of the same id was made since.
    """

    id: str
    registration: int
    etag: str
    title: str
    metadata: Metadata
    source_type: str
    media_type: str
    filename: str | None
    content_hash: str
    settings_hash: str
    text: str
    pages: Sequence[Page]
    extraction: Metadata
    warnings: Sequence[Notice]
    expires_at: datetime | None
    chunks: Sequence[Chunk]
    vectors: NDArray[np.float32]
    content_vectors: NDArray[np.float32] | None = None
    chunking: Metadata | None = None
    """How this document was cut, where it says so itself."""
    space: EmbeddingSpace | None = None
    """What the vectors are of; they are refused with `Reembedded` where the collection has moved to another one."""
    keep_versions: int = 0
    """How many versions before this one can be brought back."""
    most_chunks: int | None = None
    language: str | None = None
    """The ISO 639-1 code by which its words are stemmed; `None` stems by script."""

    @property
    def children(self) -> Sequence[Chunk]:
        """Return the chunks that searches find."""
        return [chunk for chunk in self.chunks if chunk.kind == "child"]

    @property
    def parents(self) -> Sequence[Chunk]:
        """Return the chunks that children are read in."""
        return [chunk for chunk in self.chunks if chunk.kind == "parent"]

    @property
    def embedded_hashes(self) -> set[bytes]:
        """Return the SHA-256 of every text whose vector is in this version."""
        hashes = {child.text_hash for child in self.children}
        return hashes if self.content_vectors is None else hashes | {text_hash(child.text) for child in self.children}
