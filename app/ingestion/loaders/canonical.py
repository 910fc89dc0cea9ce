"""Bring text into its canonical form (NFC, `\\n`, no NUL, no lone surrogate) and assemble it with exact offsets."""

import re
import unicodedata

from app.domain import Notice
from app.errors import DocumentLimitExceeded, EmptyDocument

_REMOVED = re.compile("[\0\ud800-\udfff]")
_SPACE = re.compile(r"\s+")
_SAYS_NOTHING = (
    "".join(chr(code) for code in (*range(0x21), *range(0x7F, 0xA1)))
    + "\u00ad\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u200b\u200c\u200d\u200e\u200f"
    + "\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
)
"""White space, controls and what has no width."""


def canonical(text: str) -> tuple[str, int]:
    """Return the canonical form of `text` and how many NULs and lone surrogates were taken out."""
    removed = 0
    if _REMOVED.search(text):
        text, removed = _REMOVED.subn("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
    return text, removed


def on_one_line(text: str) -> str:
    """Return the canonical form with each run of white space as one space."""
    return _SPACE.sub(" ", canonical(text)[0]).strip()


class Assembly:
    """Join blocks into one canonical text and know where each begins.

    Blocks are separated by line ends, across which NFC never composes: the whole is canonical when its blocks are.
    """

    def __init__(self, max_characters: int) -> None:
        self._parts: list[str] = []
        self._max_characters = max_characters
        self.length = 0
        self.removed = 0

    def add(self, block: str, separator: str = "\n\n") -> int:
        """Append a block after a separator of line ends and return where it begins; raises `DocumentLimitExceeded`."""
        block, removed = canonical(block)
        self.removed += removed
        if self._parts:
            self._parts.append(separator)
            self.length += len(separator)
        start = self.length
        self._parts.append(block)
        self.length += len(block)
        check_length(self.length, self._max_characters)
        return start

    def text(self) -> str:
        """Return the whole; raises `EmptyDocument` when there is nothing but white space in it."""
        text = "".join(self._parts)
        require_text(text)
        return text

    def notices(self) -> tuple[Notice, ...]:
        """Return the warning about characters that were taken out, if any were."""
        return removal_notices(self.removed)


def removal_notices(removed: int) -> tuple[Notice, ...]:
    """Return the warning that NULs and lone surrogates were taken out, if any were."""
    if not removed:
        return ()
    detail = f"{removed} NUL or lone surrogate characters were removed"
    return (Notice("characters_removed", detail, {"count": removed}),)


def require_text(text: str) -> None:
    """Raise `EmptyDocument` when there is nothing but white space and invisible characters in it."""
    if not text.strip(_SAYS_NOTHING):
        raise EmptyDocument("the document holds no text, only white space" if text else "the document holds no text")


def check_length(characters: int, max_characters: int) -> None:
    """Raise `DocumentLimitExceeded` for a text that is too long."""
    if characters > max_characters:
        raise DocumentLimitExceeded(
            f"the document's text is longer than {max_characters} characters",
            hint="split the document, or raise FOOTNOTE_MAX_CHARACTERS",
        )
