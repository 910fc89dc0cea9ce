"""What a cell of a workbook shows: dates as dates, shares in percent, numbers in their shortest form."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum

from lxml import etree

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_SECONDS_IN_A_DAY = 86_400
_LAST_DAY = 2_958_465
_LEAP_DAY_THAT_NEVER_WAS = 60

_QUOTED = re.compile(r'"[^"]*"?|\\.|_.|\*.')
_ELAPSED = re.compile(r"\[(h+|m+|s+)\]", re.I)
_BRACKETED = re.compile(r"\[[^\]]*\]")


class Shown(Enum):
    """What a number is shown as."""

    NUMBER = "number"
    PERCENT = "percent"
    DATE = "date"
    MOMENT = "moment"
    TIME = "time"
    DURATION = "duration"


_BUILT_IN: Mapping[str, Shown] = {
    **dict.fromkeys(map(str, (9, 10)), Shown.PERCENT),
    **dict.fromkeys(map(str, (*range(14, 18), *range(27, 32), 36, *range(50, 55), 57, 58)), Shown.DATE),
    **dict.fromkeys(map(str, (*range(18, 22), *range(32, 36), 45, 47, 55, 56)), Shown.TIME),
    "22": Shown.MOMENT,
    "46": Shown.DURATION,
}


def shown_by_style(styles: etree._Element | None) -> dict[str, Shown]:
    """Return what each style of cells shows its numbers as, by the number that cells name."""
    if styles is None:
        return {}
    formats = {
        found.get("numFmtId"): shown_by_code(found.get("formatCode", ""))
        for found in styles.iterfind(f"{_MAIN}numFmts/{_MAIN}numFmt")
    }
    ids = [style.get("numFmtId", "0") for style in styles.iterfind(f"{_MAIN}cellXfs/{_MAIN}xf")]
    return {str(place): formats.get(id_) or _BUILT_IN.get(id_, Shown.NUMBER) for place, id_ in enumerate(ids)}


def shown_by_code(code: str) -> Shown:
    """Return what a format such as `yyyy-mm-dd` or `0.0%` shows a number as."""
    first = _QUOTED.sub("", code.partition(";")[0]).lower()
    if _ELAPSED.search(first):
        return Shown.DURATION
    first = _BRACKETED.sub("", first)
    if "general" in first:
        return Shown.NUMBER
    has_time = "h" in first or "s" in first
    has_date = "d" in first or "y" in first or ("m" in first and not has_time)
    if has_date:
        return Shown.MOMENT if has_time else Shown.DATE
    if has_time:
        return Shown.TIME
    return Shown.PERCENT if "%" in first else Shown.NUMBER


def number(raw: str, shown: Shown, *, from_1904: bool) -> str:
    """Return a stored number as text; what is none stays as it is written."""
    try:
        value = float(raw)
    except ValueError:
        return raw
    if shown is Shown.NUMBER:
        return _plain(value)
    if shown is Shown.PERCENT:
        return f"{_plain(value * 100)}%"
    if shown is Shown.DURATION:
        return _duration(value)
    if not 0 <= value <= _LAST_DAY:
        return _plain(value)
    return _moment(value, shown, from_1904=from_1904)


def _plain(value: float) -> str:
    """Return the 15 digits that are exact, as spreadsheets show them."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.15g}"


def _duration(days: float) -> str:
    if abs(days) > _LAST_DAY:
        return _plain(days)
    minutes, seconds = divmod(round(abs(days) * _SECONDS_IN_A_DAY), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{'-' if days < 0 else ''}{hours}:{minutes:02}:{seconds:02}"


def _moment(days: float, shown: Shown, *, from_1904: bool) -> str:
    """Return a date and time of day; day 60 of the calendar from 1900 is a 29 February that never was."""
    from_1900 = datetime(1899, 12, 31 if days < _LEAP_DAY_THAT_NEVER_WAS else 30)
    epoch = datetime(1904, 1, 1) if from_1904 else from_1900
    try:
        moment = epoch + timedelta(seconds=round(days * _SECONDS_IN_A_DAY))
    except OverflowError:
        return _plain(days)
    if shown is Shown.TIME or (shown is Shown.MOMENT and days < 1):
        return moment.time().isoformat()
    is_whole_day = shown is Shown.DATE or days.is_integer()
    return moment.date().isoformat() if is_whole_day else moment.isoformat(" ")
