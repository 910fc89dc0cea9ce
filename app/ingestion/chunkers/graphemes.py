"""Where a text may be parted without tearing what a reader sees as one character (UAX 29, without its rarest rules)."""

import unicodedata

_JOINER = "\u200d"
# Virama signs of scripts whose consonants form conjuncts: Devanagari, Bengali, Gujarati, Oriya, Telugu, Malayalam.
_LINKERS = frozenset("\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d")
_FLAG = range(0x1F1E6, 0x1F200)
_SKIN_TONE = range(0x1F3FB, 0x1F400)
_TAG = range(0xE0020, 0xE0080)
_HANGUL_VOWEL_OR_TAIL = (range(0x1160, 0x1200), range(0xD7B0, 0xD800))


def can_part(text: str, place: int) -> bool:
    """Return whether a grapheme cluster may begin at `place`; both ends of the text are such places."""
    if place <= 0 or place >= len(text):
        return True
    before, after = text[place - 1], text[place]
    if after < "\u0300":
        return before != "\r" or after != "\n"
    code = ord(after)
    return not (
        after == _JOINER
        or unicodedata.category(after)[0] == "M"
        or code in _SKIN_TONE
        or code in _TAG
        or any(code in jamo for jamo in _HANGUL_VOWEL_OR_TAIL)
        or (before == _JOINER and unicodedata.category(after) == "So")
        or (before in _LINKERS and unicodedata.category(after) == "Lo")
        or (code in _FLAG and _flags_before(text, place) % 2 == 1)
    )


def part_before(text: str, place: int, least: int) -> int:
    """Return the last place up to `place` where the text may be parted, or `place` where none is above `least`."""
    earlier = place
    while earlier > least and not can_part(text, earlier):
        earlier -= 1
    return earlier if earlier > least else place


def part_after(text: str, place: int, most: int) -> int:
    """Return the first place from `place` on where the text may be parted, `most` at the latest."""
    while place < most and not can_part(text, place):
        place += 1
    return place


def _flags_before(text: str, place: int) -> int:
    count = 0
    while place > count and ord(text[place - count - 1]) in _FLAG:
        count += 1
    return count
