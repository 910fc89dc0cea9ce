"""Number the list items and headings of a DOCX as Word shows them."""

import re
from dataclasses import dataclass, field

from docx.opc.part import XmlPart
from lxml import etree

from app.ingestion.loaders.docx_package import W, number_of, text_of

_PLACE = re.compile(r"%(\d)")
_ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_IDEOGRAPHS = "〇一二三四五六七八九"
_CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"


@dataclass(frozen=True, slots=True)
class _Level:
    form: str = "decimal"
    text: str = ""
    start: int = 1
    all_decimal: bool = False


@dataclass(slots=True)
class _List:
    """One numbering instance: `counted` names the counters that it shares with instances of the same definition."""

    counted: str
    levels: dict[int, _Level]
    restarts: dict[int, int] = field(default_factory=dict)


class Numbering:
    """Counts as the document is read from its beginning to its end."""

    def __init__(self, part: XmlPart | None) -> None:
        self._lists: dict[str, _List] = {}
        self._counters: dict[str, dict[int, int]] = {}
        if part is not None:
            self._read(part.element)

    def label(self, list_id: str, level: int) -> str:
        """Count one more item of a list and return its label: `-` for a bullet, else such as `2.1.`."""
        found = self._lists.get(list_id)
        shape = found.levels.get(level) if found else None
        if found is None or shape is None:
            return "-" if found is None else ""
        if shape.form == "bullet":
            return "-"
        counters = self._counters.setdefault(found.counted, {})
        if level in found.restarts:
            counters[level] = found.restarts.pop(level)
        else:
            counters[level] = counters.get(level, shape.start - 1) + 1
        for deeper in [other for other in counters if other > level]:
            del counters[deeper]
        return "" if shape.form == "none" else self._written(found, shape, counters)

    def _written(self, found: _List, shape: _Level, counters: dict[int, int]) -> str:
        def place(match: re.Match[str]) -> str:
            other = int(match.group(1)) - 1
            level = found.levels.get(other, _Level())
            return formatted(counters.get(other, level.start), "decimal" if shape.all_decimal else level.form)

        return _PLACE.sub(place, shape.text).strip()

    def _read(self, root: etree._Element) -> None:
        shapes = {
            text_of(definition, "abstractNumId"): {
                number_of(level, "ilvl") or 0: _level(level) for level in definition.iterchildren(W + "lvl")
            }
            for definition in root.iterchildren(W + "abstractNum")
        }
        for instance in root.iterchildren(W + "num"):
            shape_id = text_of(instance.find(W + "abstractNumId")) or ""
            found = _List(shape_id, dict(shapes.get(shape_id, {})))
            for override in instance.iterchildren(W + "lvlOverride"):
                level = number_of(override, "ilvl") or 0
                replaced = override.find(W + "lvl")
                if replaced is not None:
                    found.levels[level] = _level(replaced)
                start = number_of(override.find(W + "startOverride"))
                if start is not None:
                    found.restarts[level] = start
            self._lists[text_of(instance, "numId") or ""] = found


def _level(level: etree._Element) -> _Level:
    start = number_of(level.find(W + "start"))
    return _Level(
        form=text_of(level.find(W + "numFmt")) or "decimal",
        text=text_of(level.find(W + "lvlText")) or "",
        start=1 if start is None else start,
        all_decimal=level.find(W + "isLgl") is not None,
    )


def formatted(number: int, form: str) -> str:
    """Return a number as a numbering format of WordprocessingML writes it; decimal for those not known here."""
    if form in ("lowerRoman", "upperRoman") and 0 < number < 4000:
        return _cased(_roman(number), form)
    if form in ("lowerLetter", "upperLetter") and number > 0:
        return _cased(chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1), form)
    if form == "decimalZero":
        return f"{number:02}"
    if form in ("decimalEnclosedCircle", "decimalEnclosedCircleChinese") and 0 < number <= len(_CIRCLED):
        return _CIRCLED[number - 1]
    if form.startswith(("chineseCounting", "japaneseCounting", "ideographDigital", "taiwaneseCounting")):
        return _ideographic(number)
    return str(number)


def _cased(text: str, form: str) -> str:
    return text.upper() if form.startswith("upper") else text


def _roman(number: int) -> str:
    written = ""
    for value, letters in _ROMAN:
        written += letters * (number // value)
        number %= value
    return written


def _ideographic(number: int) -> str:
    if not 0 < number < 100:
        return str(number)
    tens, ones = divmod(number, 10)
    written = ("" if tens == 1 else _IDEOGRAPHS[tens]) + "十" if tens else ""
    return written + (_IDEOGRAPHS[ones] if ones or not tens else "")
