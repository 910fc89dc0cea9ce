"""Tell what a file is: by its content first, then by its name, then by what the caller declared."""

import codecs
import json
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePath

from app.domain import Notice
from app.errors import DamagedDocument, EmptyDocument, UndecodableText, UnsupportedMediaType
from app.ingestion.loaders.charset import decode
from app.ingestion.media_types import (
    BMP,
    BY_DECLARATION,
    BY_EXTENSION,
    CONTAINERS,
    DOCX,
    EML,
    EPUB,
    HTML,
    JPEG,
    JSON,
    JSON_LINES,
    MSG,
    NOT_READ,
    ODT,
    OFFICE,
    PDF,
    PNG,
    PPTX,
    READ,
    RTF,
    TEXT,
    TEXTUAL,
    TIFF,
    WEBP,
    XLSX,
    XML,
)

_MAGIC = (
    (b"GIF8", "a GIF image"),
    (b"\x1f\x8b\x08", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x7fELF", "a program"),
    (b"\0asm", "a program"),
)
_PICTURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), PNG),
    (re.compile(rb"\xff\xd8\xff[\xc0-\xfe]"), JPEG),
    (re.compile(rb"II\*\0|MM\0\*"), TIFF),
    (re.compile(rb"RIFF.{4}WEBP", re.S), WEBP),
    (re.compile(rb"BM.{4}\0{4}.{4}[\x0c\x28\x34\x38\x40\x6c\x7c]\0{3}", re.S), BMP),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MESSAGE = "__properties_version1.0"
_OLE_KINDS = (
    ("WordDocument", "an old binary Word document (.doc)", "convert it to .docx"),
    ("PowerPoint Document", "an old binary PowerPoint presentation (.ppt)", "convert it to .pptx"),
    ("Workbook", "an old binary Excel workbook (.xls)", "convert it to .xlsx"),
)
_ZIP_PARTS = (
    ("word/", DOCX),
    ("ppt/", PPTX),
    ("xl/", XLSX),
    ("content.xml", ODT),
)
_HEAD_BYTES = 65_536
_LONGEST_MEDIA_TYPE = 200
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_CONTROLS = bytes(byte for byte in range(32) if byte not in b"\t\n\f\r\x1b") + b"\x7f"
_MARKUP_PROLOGUE = rb"(?:\s|<\?xml[^>]*>|<!--.*?-->)*"
_HTML_START = re.compile(_MARKUP_PROLOGUE + rb"(?:<!doctype\s+html|<html[\s>])", re.I | re.S)
_XML_START = re.compile(rb"\s*<\?xml\s|" + _MARKUP_PROLOGUE + rb"<(?:rss|feed|rdf:RDF|article)[\s>]", re.S)
_MAIL_HEADERS = re.compile(
    rb"^(Received|Return-Path|Delivered-To|MIME-Version|Message-ID|Date|From|To|Subject|Content-Type):[ \t]",
    re.I | re.M,
)
_MAIL_HEAD_BYTES = 8192
_LEAST_MAIL_HEADERS = 4


@dataclass(frozen=True, slots=True)
class Detected:
    """The media type that a loader reads, and a notice where the name or the declaration said another."""

    media_type: str
    notices: tuple[Notice, ...] = ()


def detect(path: Path, filename: str | None, declared: str | None) -> Detected:
    """Return what the file is.

    Raises `EmptyDocument` for no bytes, `UnsupportedMediaType` for what no loader reads and `DamagedDocument` for a
    container that is cut off.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head:
        raise EmptyDocument("the file has no bytes")
    extension = PurePath(filename).suffix.lower() if filename else ""
    by_name = BY_EXTENSION.get(extension)
    by_declaration = BY_DECLARATION.get((declared or "").split(";")[0].strip().lower())
    if by_declaration in TEXTUAL and filename is None and _is_said_to_be_utf_8(declared, head):
        # A text and not a file: one that begins with `%PDF-` or `<html>` speaks of them.
        return Detected(by_declaration, ())
    claimed = by_name or by_declaration
    found = _by_content(path, head, extension, claimed)
    if found is None:
        if extension in NOT_READ:
            raise _unsupported(NOT_READ[extension])
        found = _textual(path, head, claimed)
    return Detected(found, _mismatch(found, claimed))


def _is_said_to_be_utf_8(declared: str | None, head: bytes) -> bool:
    parameters = [each.strip().lower().replace('"', "") for each in (declared or "").split(";")[1:]]
    if "charset=utf-8" not in parameters:
        return False
    try:
        # The head may end amid a character.
        codecs.getincrementaldecoder("utf-8")("surrogatepass").decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _by_content(path: Path, head: bytes, extension: str, claimed: str | None) -> str | None:
    """Return the type that the first bytes prove, or `None` for some kind of text."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n\0")
    if start.startswith(b"%PDF-") or (claimed == PDF and b"%PDF-" in head[:1024]):
        return PDF
    picture = next((media_type for mark, media_type in _PICTURES if mark.match(head)), None)
    if picture:
        return picture
    if head.startswith(_OLE):
        return _ole(path, claimed)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip(path, extension)
    if start.startswith(b"{\\rtf"):
        return RTF
    if _is_binary(head, None):
        _refuse_by_magic(head)
    if _is_binary(head, claimed):
        if claimed in CONTAINERS:
            raise DamagedDocument(f"the file is named or declared as {claimed}, but its content is something else")
        raise _unsupported("a binary file of an unknown kind")
    return None


def _refuse_by_magic(head: bytes) -> None:
    for magic, what in _MAGIC:
        if head.startswith(magic):
            raise _unsupported(what)
    if head[4:8] == b"ftyp" or head[:4] in (b"RIFF", b"OggS") or head.startswith(b"ID3"):
        raise _unsupported("an audio, video or image file")


def _ole(path: Path, claimed: str | None) -> str:
    content = path.read_bytes()
    # First, since files attached to a message have their own entries in it.
    if _MESSAGE.encode("utf-16-le") in content:
        return MSG
    if "EncryptedPackage".encode("utf-16-le") in content:
        if claimed in OFFICE or claimed is None:
            return claimed or DOCX
        raise _unsupported(
            "an encrypted Office file, whose kind only its name tells", "name it .docx, .pptx or .xlsx as it was"
        )
    for entry, what, hint in _OLE_KINDS:
        if entry.encode("utf-16-le") in content:
            raise _unsupported(what, hint)
    if claimed == MSG:
        return MSG
    raise _unsupported("an old binary Office file", "convert it to .docx, .pptx or .xlsx")


def _zip(path: Path, extension: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            # Some producers write names in other letters or with backslashes.
            names = frozenset(name.replace("\\", "/").lower() for name in archive.namelist())
            declared = archive.read("mimetype") if _is_short(archive, "mimetype") else b""
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        if extension in NOT_READ:
            raise _unsupported(NOT_READ[extension]) from error
        raise DamagedDocument(
            "the file begins like a ZIP container but is cut off or damaged", hint="send the whole file again"
        ) from error
    declared_type = BY_DECLARATION.get(declared.decode("ascii", "replace").strip().lower())
    if declared_type in CONTAINERS:
        return declared_type or ODT
    if "xl/workbook.bin" in names:
        raise _unsupported(NOT_READ[".xlsb"], "convert it to .xlsx")
    if "meta-inf/container.xml" in names:
        return EPUB
    for part, media_type in _ZIP_PARTS:
        if any(name.startswith(part) for name in names):
            return media_type
    raise _unsupported("a ZIP archive", "send the files in it one by one")


def _is_short(archive: zipfile.ZipFile, name: str) -> bool:
    return name in archive.namelist() and archive.getinfo(name).file_size < _LONGEST_MEDIA_TYPE


def _is_binary(head: bytes, claimed: str | None) -> bool:
    if head.startswith(_BYTE_ORDER_MARKS) or _is_wide(head):
        return False
    controls = len(head) - len(head.translate(None, _CONTROLS))
    # Ideographs in UTF-16 without a mark have controls too: a claim of text lets the charset decide.
    return controls > (0.1 * len(head) + 4 if claimed in TEXTUAL else 0.02 * len(head) + 1)


def _is_wide(head: bytes) -> bool:
    """Tell UTF-16 and UTF-32 without a mark from binary: zero bytes stand in columns, and few other controls do."""
    zeros = [head[place::4].count(0) for place in range(4)]
    in_columns = max(zeros) >= 0.2 * len(head) / 4 and (min(zeros) <= 0.02 * len(head) / 4)
    others = len(head) - len(head.translate(None, _CONTROLS[1:]))
    return in_columns and others <= len(head) * 0.05


def _textual(path: Path, head: bytes, claimed: str | None) -> str:
    """Return which text format it is: proven markup, then the claim, then what its first letter suggests."""
    start = _as_ascii(head)
    if _HTML_START.match(start):
        return HTML
    if claimed in (JSON, JSON_LINES):
        return _json_kind(path) or claimed or JSON
    if claimed in TEXTUAL:
        return claimed or TEXT
    if len({name.lower() for name in _MAIL_HEADERS.findall(start[:_MAIL_HEAD_BYTES])}) >= _LEAST_MAIL_HEADERS:
        return EML
    if _XML_START.match(start):
        return XML
    return (_json_kind(path) if start.lstrip()[:1] in (b"{", b"[") else None) or TEXT


def _as_ascii(head: bytes) -> bytes:
    """Return bytes that patterns of ASCII letters match in UTF-16 too."""
    return (head.replace(b"\0", b"") if b"\0" in head[:64] else head).lstrip(b"\xef\xbb\xbf\xff\xfe")


def _json_kind(path: Path) -> str | None:
    """Tell one JSON value from one value in each line; `None` where it is neither."""
    try:
        text = decode(path.read_bytes()).text
    except UndecodableText:
        return None
    first, _, rest = text.strip().partition("\n")
    if _is_json(first) and rest.strip():
        return JSON_LINES
    return JSON if _is_json(text) else None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _mismatch(found: str, claimed: str | None) -> tuple[Notice, ...]:
    """Warn where the name, or else the declaration, says another kind of file."""
    if claimed in (None, found) or {claimed, found} <= {JSON, JSON_LINES}:
        return ()
    detail = f"the file is named or declared as {claimed}, but its content is {found} and was read as that"
    return (Notice("content_type_mismatch", detail, {"claimed": claimed, "found": found}),)


def _unsupported(what: str, hint: str | None = None) -> UnsupportedMediaType:
    return UnsupportedMediaType(f"the file is {what}, which is not read; read are {READ}", hint=hint)
