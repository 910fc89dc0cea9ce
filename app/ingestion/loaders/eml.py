"""EML: the headers that a reader sees, then the body; a forwarded message stands where it is, attachments are apart."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from pathlib import PurePath

from app.domain import Attachment, Extraction, Heading, Notice
from app.errors import DocumentLimitExceeded, EmptyDocument, PasswordRequired
from app.ingestion.attachment_names import told_filename
from app.ingestion.loaders import html
from app.ingestion.loaders.canonical import Assembly
from app.ingestion.loaders.charset import declared_in_markup, decode
from app.ingestion.loaders.eml_headers import RAW_HEADERS, Headers, text_of_header
from app.ingestion.loaders.html_rendering import render
from app.ingestion.port import Source

MEDIA_TYPES = ("message/rfc822",)

_DEEPEST = 20
_MOST_PARTS = 10_000
_ENCRYPTED = {"multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"}
_SIGNATURES = {"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"}
_NOT_READ = {
    "application/ms-tnef": "a message in Outlook's own format (winmail.dat)",
    "application/vnd.ms-tnef": "a message in Outlook's own format (winmail.dat)",
    "message/external-body": "a part that is kept elsewhere",
    "message/partial": "a piece of a longer message",
}
_FILES_OF_TEXT = {"text/rtf", "text/calendar", "text/vcard", "text/x-vcard", "text/csv"}
_EXTENSIONS = {"text/plain": ".txt", "text/html": ".html", "message/rfc822": ".eml", "text/calendar": ".ics"}
_SHORT_NOTE = 40
_MARKUP_SAYS_MORE = 1.5
"""Plain text stands for the HTML beside it, unless that says so much more that the text is but a notice."""


def load(source: Source) -> Extraction:
    """Read a message.

    Raises `PasswordRequired` (`encrypted_message`), `UndecodableText`, `DocumentLimitExceeded` and `EmptyDocument`.
    """
    message = _parsed(source)
    letter = _Letter(Assembly(source.limits.max_characters))
    headers = Headers.of(message)
    letter.add_message(message, headers, depth=0)
    if letter.is_encrypted and not letter.has_body and not letter.attachments:
        raise PasswordRequired(
            "the message is encrypted for its reader",
            code="encrypted_message",
            hint="decrypt it in a mail program and save it anew",
        )
    return Extraction(
        text=letter.assembly.text(),
        parser="eml",
        media_type=source.media_type,
        source_type="email",
        title=headers.subject,
        metadata=headers.metadata(),
        headings=tuple(letter.headings),
        warnings=(*letter.assembly.notices(), *letter.notices),
        attachments=tuple(letter.attachments),
    )


def _parsed(source: Source) -> Message:
    try:
        return message_from_bytes(source.path.read_bytes(), policy=RAW_HEADERS)
    except RecursionError as error:
        raise _nested_too_deeply() from error


def _nested_too_deeply() -> DocumentLimitExceeded:
    return DocumentLimitExceeded(
        f"the message is nested deeper than {_DEEPEST} or has more than {_MOST_PARTS} parts",
        hint="save its attachments as files and send them",
    )


@dataclass(slots=True)
class _Letter:
    """What was read of a message so far."""

    assembly: Assembly
    headings: list[Heading] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    has_body: bool = False
    is_encrypted: bool = False
    _parts: int = 0

    def add_message(self, message: Message, headers: Headers, depth: int) -> None:
        """Add a message's headers and parts."""
        block = headers.block()
        if block:
            self.assembly.add(block)
        self.add_part(message, depth)

    def add_part(self, part: Message, depth: int) -> None:
        """Add a part with all that is in it."""
        self._parts += 1
        if depth > _DEEPEST or self._parts > _MOST_PARTS:
            raise _nested_too_deeply()
        kind = part.get_content_type()
        if kind in _ENCRYPTED and part.get_param("smime-type") != "signed-data":
            self.is_encrypted = True
            self._leave_out("an encrypted part")
        elif kind in _NOT_READ:
            self._leave_out(_NOT_READ[kind])
        elif kind == "message/rfc822":
            self._add_forwarded(part, depth)
        elif part.is_multipart():
            self._add_multipart(part, depth)
        elif kind not in _SIGNATURES:
            self._add_leaf(part, kind)

    def _add_forwarded(self, part: Message, depth: int) -> None:
        for message in _children(part):
            self.add_message(message, Headers.of(message), depth + 1)

    def _add_multipart(self, part: Message, depth: int) -> None:
        children = _children(part)
        kind = part.get_content_type()
        if kind == "multipart/alternative":
            children = _best_alternative(children)
        elif kind == "multipart/related":
            # What is related is drawn inside the page, like a logo below a signature.
            children = [child for number, child in enumerate(children) if number == 0 or _is_attached(child)]
        for child in children:
            self.add_part(child, depth + 1)

    def _add_leaf(self, part: Message, kind: str) -> None:
        name = _filename(part)
        is_text = kind.startswith(("text/", "message/")) and kind not in _FILES_OF_TEXT
        if is_text and not _is_attached(part) and not name:
            self.add_body(part, kind)
            return
        data = _bytes(part)
        if PurePath(name).name.lower() == "winmail.dat":
            self._leave_out(_NOT_READ["application/ms-tnef"])
        elif data.strip():
            fallback = f"attachment-{len(self.attachments) + 1}{_EXTENSIONS.get(kind, '')}"
            self.attachments.append(Attachment(name or fallback, kind, data))

    def add_body(self, part: Message, kind: str) -> None:
        """Add the text of a part that is read as it stands."""
        data = _bytes(part)
        if kind in ("text/html", "application/xhtml+xml"):
            self._add_markup(data, _charset(part))
            return
        text = decode(data, _charset(part)).text.strip("\r\n")
        if text.strip():
            self.has_body = True
            self.assembly.add(_unflowed(text, part))

    def _add_markup(self, data: bytes, charset: str | None) -> None:
        try:
            content = html.parse(decode(data, charset or declared_in_markup(data)).text, is_whole=True).content
        except EmptyDocument:
            return
        if content is not None:
            before = self.assembly.length
            self.headings.extend(render(content, self.assembly))
            self.has_body = self.has_body or self.assembly.length > before

    def _leave_out(self, what: str) -> None:
        self.notices.append(Notice("part_not_read", f"{what} was left out", {"part": what}))


def _children(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [child for child in payload if isinstance(child, Message)] if isinstance(payload, list) else []


def _best_alternative(children: list[Message]) -> list[Message]:
    """Return the one part of several that say the same: plain text, unless the HTML says much more."""
    plain = next((child for child in children if child.get_content_type() == "text/plain"), None)
    rich = next((child for child in reversed(children) if _holds_markup(child)), None)
    others = [child for child in children if _is_attached(child) and child not in (plain, rich)]
    best = plain if plain is not None and not _says_much_more(rich, plain) else rich
    return [*([best] if best is not None else children[-1:]), *others]


def _holds_markup(part: Message) -> bool:
    return any(child.get_content_type() == "text/html" for child in part.walk())


def _says_much_more(rich: Message | None, plain: Message) -> bool:
    if rich is None:
        return False
    markup = next(child for child in rich.walk() if child.get_content_type() == "text/html")
    return _letters(markup) > _MARKUP_SAYS_MORE * _letters(plain) + _SHORT_NOTE


def _letters(part: Message) -> int:
    letter = _Letter(Assembly(sys.maxsize))
    letter.add_body(part, part.get_content_type())
    return letter.assembly.length


def _is_attached(part: Message) -> bool:
    return part.get_content_disposition() == "attachment"


def _filename(part: Message) -> str:
    return text_of_header(told_filename(part))


def _charset(part: Message) -> str | None:
    try:
        return part.get_content_charset()
    except ValueError:
        # A name that is itself in a charset that cannot be.
        return None


def _bytes(part: Message) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _unflowed(text: str, part: Message) -> str:
    """Join the lines of `format=flowed` (RFC 3676), where a space at the end says that the line goes on."""
    if str(part.get_param("format", "")).lower() != "flowed":
        return text
    return "".join(_flowed_lines(text.replace("\r\n", "\n").split("\n"))).strip("\n")


def _flowed_lines(lines: list[str]) -> Iterator[str]:
    for line in lines:
        goes_on = line.endswith(" ") and line != "-- "
        yield line if goes_on else line + "\n"
