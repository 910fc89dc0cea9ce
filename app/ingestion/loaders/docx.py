"""DOCX: headers, then the body in its order, then footnotes and footers. Insertions are in, deletions are out."""

from app.domain import Extraction
from app.ingestion.port import Source

MEDIA_TYPES = ("application/vnd.openxmlformats-officedocument.wordprocessingml.document",)


def load(source: Source) -> Extraction:
    """Read a DOCX; raises `PasswordRequired`, `DamagedDocument`, `DocumentLimitExceeded` and `EmptyDocument`."""
    # python-docx is slow to import, and no other format needs it.
    from app.ingestion.loaders.docx_story import read

    return read(source)
