"""Plain text, in whatever charset: the text stays as it is written."""

from app.domain import Extraction
from app.ingestion.loaders.canonical import canonical, check_length, removal_notices, require_text
from app.ingestion.loaders.charset import Decoded, charset_parameter, decode
from app.ingestion.port import Source

MEDIA_TYPES = ("text/plain",)


def load(source: Source) -> Extraction:
    """Read the file as text; raises `UndecodableText` and `EmptyDocument`."""
    decoded = read(source)
    text, removed = canonical(decoded.text)
    require_text(text)
    check_length(len(text), source.limits.max_characters)
    return Extraction(
        text=text,
        parser="text",
        media_type=source.media_type,
        source_type="text",
        encoding=decoded.encoding,
        warnings=removal_notices(removed),
    )


def read(source: Source) -> Decoded:
    """Return the file's text as it is, by the charset that its declaration names where that fits."""
    return decode(source.path.read_bytes(), charset_parameter(source.declared))
