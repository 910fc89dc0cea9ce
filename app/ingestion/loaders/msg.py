"""MSG: a message as Outlook saves it, an OLE container whose streams are named by property and type."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email import message_from_string
from typing import Any

from app.domain import Attachment, Extraction, Heading, Notice
from app.errors import DamagedDocument, EmptyDocument
from app.ingestion.loaders import html
from app.ingestion.loaders.canonical import Assembly, on_one_line
from app.ingestion.loaders.charset import declared_in_markup, decode
from app.ingestion.loaders.eml_headers import RAW_HEADERS, Headers, decoded_bytes
from app.ingestion.loaders.html_rendering import render
from app.ingestion.port import Source

MEDIA_TYPES = ("application/vnd.ms-outlook",)

_UNICODE, _BYTES, _BINARY = "001F", "001E", "0102"
_SUBJECT, _SENDER, _SENDER_ADDRESS, _SMTP_ADDRESS = "0037", "0C1A", "0C1F", "5D01"
_SHOWN_TO, _SHOWN_CC, _TRANSPORT, _MESSAGE_ID = "0E04", "0E03", "007D", "1035"
_PLAIN_BODY, _HTML_BODY, _RICH_BODY = "1000", "1013", "1009"
_ATTACHED_DATA, _LONG_NAME, _SHORT_NAME, _MIME_TAG = "3701", "3707", "3704", "370E"
_RECIPIENT_NAME, _RECIPIENT_ADDRESS, _RECIPIENT_SMTP = "3001", "3003", "39FE"
_SUBMITTED = 0x00390040
_PROPERTIES = "__properties_version1.0"
_EMBEDDED_MESSAGE = "3701000D"
_WINDOWS_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)
_TICKS_IN_A_MICROSECOND = 10
_DEEPEST = 10

_Folder = tuple[str, ...]


def load(source: Source) -> Extraction:
    """Read a message; raises `DamagedDocument`, `UndecodableText`, `DocumentLimitExceeded` and `EmptyDocument`."""
    # Slow to import and seldom needed.
    import olefile

    try:
        with olefile.OleFileIO(source.path) as container:
            if not container.exists(_PROPERTIES):
                raise DamagedDocument("the message has no properties", hint="save it anew in Outlook")
            return _Letter(container, source).extraction()
    except (OSError, ValueError, IndexError, TypeError, AttributeError) as error:
        raise DamagedDocument("the message is cut off or damaged", hint="save it anew in Outlook") from error


class _Letter:
    """What was read of a message so far."""

    def __init__(self, container: Any, source: Source) -> None:
        self._container = container
        self._source = source
        self._assembly = Assembly(source.limits.max_characters)
        self._headings: list[Heading] = []
        self._notices: list[Notice] = []
        self._attachments: list[Attachment] = []

    def extraction(self) -> Extraction:
        headers = self._add_message((), 0)
        return Extraction(
            text=self._assembly.text(),
            parser="msg",
            media_type=self._source.media_type,
            source_type="email",
            title=headers.subject,
            metadata=headers.metadata(),
            headings=tuple(self._headings),
            warnings=(*self._assembly.notices(), *self._notices),
            attachments=tuple(self._attachments),
        )

    def _add_message(self, folder: _Folder, depth: int) -> Headers:
        headers = self._headers(folder)
        if headers.block():
            self._assembly.add(headers.block())
        self._add_body(folder)
        for attached in self._folders(folder, "__attach_version1.0_"):
            self._add_attached(attached, depth)
        return headers

    def _headers(self, folder: _Folder) -> Headers:
        """Return what the container itself says, and of what it does not, what came over the wire."""
        sent = Headers.of(message_from_string(self._text(folder, _TRANSPORT), policy=RAW_HEADERS))
        sender = self._text(folder, _SENDER)
        address = self._text(folder, _SMTP_ADDRESS) or self._text(folder, _SENDER_ADDRESS)
        shown = {
            "From": f"{sender} <{address}>" if sender and "@" in address and sender != address else sender or address,
            "To": self._text(folder, _SHOWN_TO) and self._recipients(folder, self._text(folder, _SHOWN_TO)),
            "Cc": self._text(folder, _SHOWN_CC) and self._recipients(folder, self._text(folder, _SHOWN_CC)),
            "Subject": self._text(folder, _SUBJECT),
            "Message-ID": self._text(folder, _MESSAGE_ID),
        }
        date = self._submitted(folder) or sent.date
        fields = {**sent.fields, **{name: on_one_line(text) for name, text in shown.items() if text}}
        if date is not None and "Date" not in fields:
            fields["Date"] = date.isoformat(sep=" ", timespec="minutes")
        return Headers(fields, date)

    def _recipients(self, folder: _Folder, shown: str) -> str:
        """Return the names that are shown, separated as in mail and with their addresses where these are known."""
        addresses: dict[str, str] = {}
        for recipient in self._folders(folder, "__recip_version1.0_"):
            address = self._text(recipient, _RECIPIENT_SMTP) or self._text(recipient, _RECIPIENT_ADDRESS)
            addresses[self._text(recipient, _RECIPIENT_NAME).strip()] = address
        names = [name.strip() for name in shown.split(";") if name.strip()]
        return ", ".join(
            f"{name} <{addresses[name]}>" if "@" in addresses.get(name, "") and addresses[name] != name else name
            for name in names
        )

    def _submitted(self, folder: _Folder) -> datetime | None:
        """Return when it was sent, which stands among the properties of fixed length: ticks of 100 ns since 1601."""
        data = self._stream((*folder, _PROPERTIES)) or b""
        begin = 32 if not folder else 24
        for place in range(begin, len(data) - 15, 16):
            if int.from_bytes(data[place : place + 4], "little") == _SUBMITTED:
                ticks = int.from_bytes(data[place + 8 : place + 16], "little")
                try:
                    return _WINDOWS_EPOCH + timedelta(microseconds=ticks // _TICKS_IN_A_MICROSECOND)
                except OverflowError:
                    return None
        return None

    def _add_body(self, folder: _Folder) -> None:
        plain = self._text(folder, _PLAIN_BODY).strip()
        markup = self._stream((*folder, f"__substg1.0_{_HTML_BODY}{_BINARY}"))
        if plain:
            self._assembly.add(plain)
        elif markup:
            self._add_markup(markup)
        elif self._text(folder, _HTML_BODY):
            self._add_markup(self._text(folder, _HTML_BODY).encode())
        elif self._container.exists([*folder, f"__substg1.0_{_RICH_BODY}{_BINARY}"]):
            what = "a body in compressed RTF"
            self._notices.append(Notice("part_not_read", f"{what} was left out", {"part": what}))

    def _add_markup(self, data: bytes) -> None:
        try:
            content = html.parse(decode(data, declared_in_markup(data)).text, is_whole=True).content
        except EmptyDocument:
            return
        if content is not None:
            self._headings.extend(render(content, self._assembly))

    def _add_attached(self, folder: _Folder, depth: int) -> None:
        embedded = (*folder, f"__substg1.0_{_EMBEDDED_MESSAGE}")
        if depth < _DEEPEST and self._container.exists([*embedded, _PROPERTIES]):
            self._add_message(embedded, depth + 1)
            return
        data = self._stream((*folder, f"__substg1.0_{_ATTACHED_DATA}{_BINARY}"))
        if data:
            name = self._text(folder, _LONG_NAME) or self._text(folder, _SHORT_NAME)
            name = name or f"attachment-{len(self._attachments) + 1}"
            self._attachments.append(Attachment(name, self._text(folder, _MIME_TAG) or None, data))

    def _folders(self, folder: _Folder, prefix: str) -> Iterator[_Folder]:
        """Yield the storages right below one whose names begin so, in their order."""
        depth = len(folder)
        below = [tuple(path) for path in self._container.listdir(streams=False, storages=True)]
        yield from sorted(
            path for path in below if len(path) == depth + 1 and path[:depth] == folder and path[-1].startswith(prefix)
        )

    def _text(self, folder: _Folder, named: str) -> str:
        data = self._stream((*folder, f"__substg1.0_{named}{_UNICODE}"))
        if data is not None:
            return data.decode("utf-16-le", "ignore").rstrip("\0")
        data = self._stream((*folder, f"__substg1.0_{named}{_BYTES}"))
        return decoded_bytes(data).rstrip("\0") if data else ""

    def _stream(self, path: _Folder) -> bytes | None:
        if not self._container.exists(list(path)):
            return None
        data: bytes = self._container.openstream(list(path)).read()
        return data
