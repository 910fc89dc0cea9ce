"""Names of files that came with a message or an answer: no paths, not too long, and each once."""

import re
from collections.abc import Callable
from email.message import Message
from itertools import count
from pathlib import PurePath

_NOT_IN_A_NAME = re.compile(r"[\x00-\x1f\x7f-\x9f/\\\ud800-\udfff\ufffd]+")
_LONGEST_NAME = 120
_LONGEST_ENDING = 12


def told_filename(message: Message) -> str | None:
    """Return the file name that the headers of a message or of a part tell, if it can be read."""
    try:
        return message.get_filename() or None
    except (ValueError, TypeError):
        # Of a charset that decodes no names, like `idna`, the library raises what it raises; it cannot order pieces of
        # a name with and without numbers.
        return None


def without_unsafe(name: str) -> str:
    """Return the name with `_` for what no name of a file or a document may hold."""
    return _NOT_IN_A_NAME.sub("_", name).strip()


def safe_name(name: str) -> str:
    """Return a name that may stand in a document's id."""
    name = without_unsafe(name) or "attachment"
    if len(name) <= _LONGEST_NAME:
        return name
    ending = PurePath(name).suffix[-_LONGEST_ENDING:]
    return name[: _LONGEST_NAME - len(ending)] + ending


def first_free(name: str, is_taken: Callable[[str], bool]) -> str:
    """Return the name itself or, where it is taken, the name with the lowest free number: `offer (2).pdf`."""
    path = PurePath(name)
    numbered = (f"{path.stem} ({number}){path.suffix}" if number > 1 else name for number in count(1))
    return next(candidate for candidate in numbered if not is_taken(candidate))
