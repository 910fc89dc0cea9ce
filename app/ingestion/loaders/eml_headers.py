"""Read the headers of a mail as people read them: encoded words, bytes in any charset, addresses and dates."""

import base64
import binascii
import quopri
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.policy import Compat32
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any

from app.errors import UndecodableText
from app.ingestion.loaders.canonical import on_one_line
from app.ingestion.loaders.charset import decode

_ENCODED_WORD = re.compile(r"=\?([\w.:+-]+)(?:\*[\w-]*)?\?([bBqQ])\?([^?]*)\?=")
_BETWEEN_WORDS = re.compile(r"(\?=)\s+(=\?)")
_ADDRESSES = ("From", "Reply-To", "To", "Cc", "Bcc")
_SHOWN = ("From", "To", "Cc", "Subject", "Date")
_MOST_ADDRESSES = 100
_LONGEST_FIELD_OF_CONTENT = 16_384
"""The library's time to read the parameters of a `Content-Type` grows with the square of their length."""


class _RawHeaders(Compat32):
    """Leaves headers as they came: the library's own reading turns bytes beyond ASCII into replacement characters."""

    def header_fetch_parse(self, name: str, value: str) -> str:
        return value[:_LONGEST_FIELD_OF_CONTENT] if name.lower().startswith("content-") else value


RAW_HEADERS = _RawHeaders()


def text_of_header(value: object) -> str:
    """Return a header's value on one line, its encoded words (RFC 2047) and raw bytes decoded."""
    raw = "" if value is None else str(value)
    if not raw.isascii():
        raw = decoded_bytes(raw.encode("utf-8", "surrogateescape"))
    return on_one_line("".join(_words(_BETWEEN_WORDS.sub(r"\1\2", raw))))


def decoded_bytes(data: bytes, charset: str | None = None) -> str:
    """Return the text of a few bytes by the charset they are said to be in or else look like."""
    try:
        return decode(data, charset).text
    except UndecodableText:
        return data.decode("latin-1")


def _words(text: str) -> Iterator[str]:
    """Yield the pieces; neighbours in one charset are decoded as one, since some split amid a letter."""
    done, waiting, charset = 0, b"", None
    for word in _ENCODED_WORD.finditer(text):
        is_neighbour = word.start() == done and word[1].lower() == charset
        if waiting and not is_neighbour:
            yield decoded_bytes(waiting, charset)
            waiting = b""
        yield text[done : word.start()]
        charset, waiting, done = word[1].lower(), waiting + _unpacked(word[2], word[3]), word.end()
    if waiting:
        yield decoded_bytes(waiting, charset)
    yield text[done:]


def _unpacked(encoding: str, text: str) -> bytes:
    if encoding in "qQ":
        return quopri.decodestring(text.encode("ascii", "ignore"), header=True)
    padded = text.encode("ascii", "ignore") + b"=" * (-len(text) % 4)
    try:
        return base64.b64decode(padded)
    except binascii.Error:
        return text.encode()


@dataclass(frozen=True, slots=True)
class Headers:
    """The headers of one message, as text."""

    fields: Mapping[str, str]
    date: datetime | None

    @classmethod
    def of(cls, message: Message) -> "Headers":
        """Read those that a reader sees, and those that place the message in its thread."""
        names = (*_ADDRESSES, "Subject", "Date", "Message-ID", "In-Reply-To")
        found = {name: text_of_header(message.get(name)) for name in names}
        return cls({name: text for name, text in found.items() if text}, _date(message.get("Date")))

    @property
    def subject(self) -> str | None:
        """Return the subject, if there is one."""
        return self.fields.get("Subject")

    def block(self) -> str:
        """Return the lines that a mail program shows above the body."""
        return "\n".join(f"{name}: {self.fields[name]}" for name in _SHOWN if name in self.fields)

    def metadata(self) -> dict[str, Any]:
        """Return the fields that filters ask for: addresses alone, the date in UTC."""
        senders = self._addresses("From")
        name = next(iter(self._named_addresses("From")), ("", ""))[0]
        found: dict[str, Any] = {
            "from": senders[0] if senders else None,
            "from_name": name or None,
            "to": self._addresses("To"),
            "cc": self._addresses("Cc"),
            "subject": self.subject,
            "date": self.date.isoformat().replace("+00:00", "Z") if self.date else None,
            "message_id": self.fields.get("Message-ID"),
            "in_reply_to": self.fields.get("In-Reply-To"),
        }
        return {field: value for field, value in found.items() if value}

    def _addresses(self, name: str) -> list[str]:
        found = [address.lower() for _, address in self._named_addresses(name) if "@" in address]
        return list(dict.fromkeys(found))[:_MOST_ADDRESSES]

    def _named_addresses(self, name: str) -> list[tuple[str, str]]:
        try:
            return getaddresses([self.fields.get(name, "")])
        except RecursionError:
            # Comments in comments, each of which the library calls itself for.
            return []


def _date(value: object) -> datetime | None:
    """Return the moment in UTC; a date without a zone, or none at all, is no moment."""
    try:
        date = parsedate_to_datetime(text_of_header(value))
        return date.astimezone(UTC) if date.tzinfo else None
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
