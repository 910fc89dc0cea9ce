"""Read rich text word by word: groups inherit and forget, destinations take text elsewhere or nowhere."""

import re
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field

from app.errors import DocumentLimitExceeded
from app.ingestion.loaders.rtf_characters import SIGNS, WORDS, by_charset, by_page, decoded, unicode_character
from app.ingestion.loaders.rtf_flow import Flow

_TOKEN = re.compile(
    rb"\\([A-Za-z]{1,32})(-?\d{1,10})? ?|\\'([0-9A-Fa-f]{2})|\\([^A-Za-z])|([{}])|([^\\{}\r\n]+)|[\r\n]+|\\", re.S
)
_PAGES = {"ansi": "cp1252", "mac": "mac_roman", "pc": "cp437", "pca": "cp850"}
_HEADING_NAME = re.compile(r"heading (\d)", re.I)
_DEEPEST = 10_000
_SKIPPED = {
    *("colortbl", "info", "pict", "fldinst", "sp", "annotation", "bkmkstart", "bkmkend", "xe", "tc", "rxe"),
    *("objdata", "nonshppict", "themedata", "datastore", "pntxta", "pntxtb", "pnseclvl", "ftnsep", "ftnsepc", "mmath"),
    *("aftnsep", "aftnsepc", "ftncn", "aftncn", "listtable", "listoverridetable", "filetbl", "revtbl", "shprslt"),
}
_READ_ALTHOUGH_STARRED = {"shpinst", "ud", "nesttableprops"}
_MARGINS = {
    **dict.fromkeys(("header", "headerl", "headerr", "headerf"), "header"),
    **dict.fromkeys(("footer", "footerl", "footerr", "footerf"), "footer"),
}


@dataclass(slots=True)
class Story:
    """What a file says: its flows, what its margins say, and the title among its properties."""

    body: Flow = field(default_factory=Flow)
    headers: list[Flow] = field(default_factory=list)
    footers: list[Flow] = field(default_factory=list)
    notes: list[Flow] = field(default_factory=list)
    title: str = ""
    undecoded: int = 0
    is_cut_off: bool = False


@dataclass(slots=True)
class _Group:
    """What holds until the closing brace; `write` takes text, `close` is called at the brace."""

    flow: Flow
    write: Callable[[str], None]
    close: Callable[[], None] | None = None
    table: str = ""
    is_skipped: bool = False
    is_starred: bool = False
    is_hidden: bool = False
    is_told_twice: bool = False
    in_table: bool = False
    font: int = -1
    level: int | None = None
    fallback: int = 1


@dataclass(slots=True)
class _Style:
    """An entry of the style sheet as it is read."""

    number: int = 0
    level: int | None = None
    name: list[str] = field(default_factory=list)


def read(data: bytes) -> Story:
    """Return what a file says; raises `DocumentLimitExceeded` for groups in groups beyond all measure."""
    return _Reader(data).run()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._story = Story()
        self._group = _Group(self._story.body, self._story.body.write)
        self._groups: list[_Group] = []
        self._page: str | None = None
        self._default_font = -1
        self._fonts: dict[int, str | None] = {}
        self._levels: dict[int, int | None] = {}
        self._style = _Style()
        self._bytes = bytearray()
        self._to_leave_out = 0
        self._place = 0

    def run(self) -> Story:
        while self._place < len(self._data) and (token := _TOKEN.match(self._data, self._place)):
            self._place = token.end()
            word, number, code, sign, brace, text = token.groups()
            if code:
                self._add(bytes.fromhex(code.decode()))
            elif text:
                self._add(text)
            elif word:
                self._flush()
                self._word(word.decode(), int(number) if number else None)
            elif sign:
                self._flush()
                self._sign(sign)
            elif brace:
                self._flush()
                self._brace(brace)
        self._flush()
        self._story.is_cut_off = bool(self._groups)
        for flow in (self._story.body, *self._story.headers, *self._story.footers, *self._story.notes):
            flow.end()
        return self._story

    def _add(self, data: bytes) -> None:
        """Take bytes of text, without those that stand in for a character that was told by its number."""
        left_out = min(self._to_leave_out, len(data))
        self._to_leave_out -= left_out
        if not (self._group.is_skipped or self._group.is_hidden):
            self._bytes += data[left_out:]

    def _flush(self) -> None:
        """Decode the bytes so far: letters of two bytes may be written as two codes, or a code and a letter."""
        if self._bytes:
            text, undecoded = decoded(bytes(self._bytes), (self._fonts.get(self._group.font), self._page))
            self._bytes.clear()
            self._story.undecoded += undecoded
            self._group.write(text)

    def _write(self, text: str) -> None:
        if self._to_leave_out:
            self._to_leave_out -= 1
        elif not (self._group.is_skipped or self._group.is_hidden):
            self._group.write(text)

    def _sign(self, sign: bytes) -> None:
        if sign == b"*":
            self._group.is_starred = True
        elif sign in b"\r\n":
            self._paragraph_word("par")
        elif sign in SIGNS:
            self._write(SIGNS[sign])

    def _brace(self, brace: bytes) -> None:
        self._to_leave_out = 0
        if brace == b"{":
            if len(self._groups) >= _DEEPEST:
                raise DocumentLimitExceeded(f"the document nests groups deeper than {_DEEPEST}")
            self._groups.append(self._group)
            self._group = copy(self._group)
            self._group.close, self._group.is_starred = None, False
            if self._group.table == "styles":
                self._style, self._group.table = _Style(), "style"
                self._group.write, self._group.close = self._style.name.append, self._end_style
        elif self._groups:
            if self._group.close:
                self._group.close()
            self._group = self._groups.pop()
            if not self._groups:
                # What stands behind the last brace is not of the document.
                self._place = len(self._data)

    def _word(self, word: str, number: int | None) -> None:
        group = self._group
        is_starred, group.is_starred = group.is_starred, False
        if word == "bin":
            self._place += max(number or 0, 0)
        elif (is_starred and word not in _READ_ALTHOUGH_STARRED) or word in _SKIPPED:
            # What stands inside a group that is passed over may still be wanted: a title, a text in Unicode.
            group.is_skipped = True
        elif group.is_skipped:
            self._enter(word)
        elif word == "u" and number is not None:
            self._write(unicode_character(number))
            self._to_leave_out = group.fallback
        elif word in WORDS:
            self._write(WORDS[word])
        elif not (self._paragraph_word(word) or self._destination(word) or self._property(word, number)):
            self._definition(word, number)

    def _enter(self, word: str) -> None:
        """Read a group inside one that is passed over."""
        group = self._group
        if word == "title":
            parts: list[str] = []
            group.is_skipped, group.write = False, parts.append
            group.close = lambda: setattr(self._story, "title", "".join(parts))
        elif word == "ud" and group.is_told_twice:
            group.is_skipped = False

    def _destination(self, word: str) -> bool:
        group = self._group
        if word in ("fonttbl", "stylesheet"):
            group.table = "fonts" if word == "fonttbl" else "styles"
            group.write = lambda _: None
        elif word in _MARGINS:
            margins = self._story.headers if _MARGINS[word] == "header" else self._story.footers
            self._begin(Flow(), margins)
        elif word == "footnote":
            self._write(f"[{len(self._story.notes) + 1}]")
            self._begin(Flow(), self._story.notes)
        elif word == "shptxt":
            self._begin(Flow(), group.flow.boxes)
        elif word == "upr":
            group.is_skipped = group.is_told_twice = True
        elif word in ("listtext", "pntext"):
            label: list[str] = []
            group.write = label.append
            group.close = lambda: group.flow.mark("".join(label))
        else:
            return False
        return True

    def _begin(self, flow: Flow, flows: list[Flow]) -> None:
        flows.append(flow)
        self._group.flow, self._group.write = flow, flow.write
        self._group.in_table, self._group.level = False, None

    def _paragraph_word(self, word: str) -> bool:
        group = self._group
        if word in ("par", "sect", "page"):
            group.flow.end_paragraph(group.level, in_table=group.in_table)
        elif word == "cell":
            group.flow.end_cell()
        elif word == "row":
            group.flow.end_row()
        elif word in ("nestcell", "nestrow"):
            self._write(" ")
        elif word == "pard":
            group.in_table, group.level = False, None
        elif word == "intbl":
            group.in_table = True
        else:
            return False
        return True

    def _property(self, word: str, number: int | None) -> bool:
        group = self._group
        if word in ("v", "deleted"):
            group.is_hidden = number != 0
        elif word == "plain":
            group.is_hidden, group.font = False, self._default_font
        elif word == "f" and number is not None:
            group.font = number
        elif word == "uc" and number is not None:
            group.fallback = max(number, 0)
        elif word == "outlinelevel" and number is not None:
            group.level = self._style.level = number + 1 if 0 <= number < 9 else None
        elif word == "s" and number is not None:
            self._style.number = number
            group.level = self._levels.get(number)
        else:
            return False
        return True

    def _definition(self, word: str, number: int | None) -> None:
        """Take what the head of the file says of fonts and code pages."""
        group = self._group
        if word == "fcharset" and group.table == "fonts":
            self._fonts[group.font] = by_charset(number or 0)
        elif word == "cpg" and group.table == "fonts":
            self._fonts[group.font] = by_page(number or 0)
        elif word == "deff" and number is not None:
            self._default_font = group.font = number
        elif word == "ansicpg" and number:
            self._page = by_page(number)
        elif word in _PAGES and self._page is None:
            self._page = _PAGES[word]

    def _end_style(self) -> None:
        named = _HEADING_NAME.search("".join(self._style.name))
        self._levels[self._style.number] = self._style.level or (int(named.group(1)) or None if named else None)
