"""OpenDocument: texts (ODT), presentations (ODP) and spreadsheets (ODS), told apart by what the body holds."""

from collections.abc import Callable, Mapping

from lxml import etree

from app.domain import Extraction
from app.errors import DamagedDocument, DocumentLimitExceeded, PasswordRequired
from app.ingestion.loaders.archive import Archive, open_archive
from app.ingestion.loaders.canonical import on_one_line
from app.ingestion.loaders.odf_content import OFFICE, Content
from app.ingestion.loaders.odf_sheets import read_spreadsheet
from app.ingestion.loaders.odf_slides import read_presentation
from app.ingestion.loaders.odf_text import read_text
from app.ingestion.port import Source

MEDIA_TYPES = (
    "application/vnd.oasis.opendocument.text",
    "application/vnd.oasis.opendocument.presentation",
    "application/vnd.oasis.opendocument.spreadsheet",
)

_READERS: Mapping[str, Callable[[Content, Source], Extraction]] = {
    OFFICE + "text": read_text,
    OFFICE + "presentation": read_presentation,
    OFFICE + "spreadsheet": read_spreadsheet,
}
_ENCRYPTED = "{urn:oasis:names:tc:opendocument:xmlns:manifest:1.0}encryption-data"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"


def load(source: Source) -> Extraction:
    """Read an OpenDocument file.

    Raises `PasswordRequired` for an encrypted one, `DamagedDocument`, `DocumentLimitExceeded` and `EmptyDocument`.
    """
    with open_archive(source.path, source.limits) as archive:
        _refuse_encrypted(archive)
        root, styles, meta = (archive.tree(part) for part in ("content.xml", "styles.xml", "meta.xml"))
    body = None if root is None else root.find(OFFICE + "body")
    for content in () if body is None else body.iterchildren(etree.Element):
        if content.tag in _READERS:
            title = None if meta is None else next((on_one_line(found.text or "") for found in meta.iter(_TITLE)), None)
            try:
                return _READERS[content.tag](Content(content, title or None, root, styles), source)
            except RecursionError as error:
                raise DocumentLimitExceeded("the document is nested too deeply to be read") from error
    raise DamagedDocument("the container holds no OpenDocument text, presentation or spreadsheet")


def _refuse_encrypted(archive: Archive) -> None:
    manifest = archive.tree("META-INF/manifest.xml")
    if manifest is not None and next(manifest.iter(_ENCRYPTED), None) is not None:
        raise PasswordRequired(
            "the OpenDocument file is encrypted, which is not read with a password either",
            hint="save it without a password",
        )
