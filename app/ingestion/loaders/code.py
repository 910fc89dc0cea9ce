"""Source code: the text as it is written; functions and classes that stand at a line's beginning are headings."""

import re
from collections.abc import Iterator, Mapping

from app.domain import Extraction, Heading
from app.ingestion.loaders.canonical import canonical, check_length, removal_notices, require_text
from app.ingestion.loaders.text import read
from app.ingestion.media_types import CODE
from app.ingestion.port import Source

MEDIA_TYPES = tuple(CODE)

_LANGUAGES: Mapping[str, str] = {
    "text/x-c++": "cpp",
    "text/x-csharp": "c_sharp",
    "text/x-shellscript": "bash",
}
"""The names that differ from the end of the media type; those that grammars go by."""

_MODIFIERS = (
    "export default declare pub public private protected internal static abstract final sealed open override async "
    "unsafe partial data inline virtual const extern suspend case local"
)
_KINDS = (
    "def class func fun fn function interface trait struct enum impl module namespace object type record protocol "
    "extension mod union sub"
)
_NAME = r"([A-Za-z_$][\w$.:]*)"
_DEFINITION = re.compile(
    rf"^[ \t]*(?:(?:{'|'.join(_MODIFIERS.split())})(?:\([a-z]+\))?[ \t]+)*(?:{'|'.join(_KINDS.split())})\b\*?[ \t]*"
    rf"(?:<[^>\n]*>[ \t]*)?(?:\([^)\n]*\)[ \t]*)?{_NAME}",
    re.M,
)
_TYPED_FUNCTION = re.compile(
    r"^(?!return\b|else\b|typedef\b)[A-Za-z_][\w:<>,*&\[\] \t]{0,200}?[ \t*&]([A-Za-z_~][\w:~]*)"
    r"\([^;{}]{0,1000}?\)[^;{}()]{0,100}\{",
    re.M,
)
_CREATED = re.compile(
    r"^[ \t]*create[ \t]+(?:or[ \t]+replace[ \t]+)?(?:\w+[ \t]+)?(?:table|view|function|procedure|trigger|index)[ \t]+"
    r"(?:if[ \t]+not[ \t]+exists[ \t]+)?([\w.\"`\[\]]+)",
    re.I | re.M,
)
_TYPED = {"c", "cpp"}
_MOST_HEADINGS = 5_000
_INNER = 2


def load(source: Source) -> Extraction:
    """Read a file of code; raises `UndecodableText` and `EmptyDocument`."""
    decoded = read(source)
    text, removed = canonical(decoded.text)
    require_text(text)
    check_length(len(text), source.limits.max_characters)
    language = language_of(source.media_type)
    return Extraction(
        text=text,
        parser="code",
        media_type=source.media_type,
        source_type="code",
        encoding=decoded.encoding,
        metadata={"language": language},
        headings=tuple(_definitions(text, language)),
        warnings=removal_notices(removed),
        details={"language": language},
    )


def language_of(media_type: str) -> str:
    """Return the language's name, as tree-sitter grammars are called where there is one."""
    return _LANGUAGES.get(media_type) or media_type.partition("/")[2].removeprefix("x-")


def _definitions(text: str, language: str) -> Iterator[Heading]:
    """Yield the definitions that a line begins with: outer ones at level 1, those inside them at level 2."""
    patterns = [_CREATED] if language == "sql" else [_DEFINITION, *([_TYPED_FUNCTION] if language in _TYPED else [])]
    found = {}
    for pattern in patterns:
        for match in pattern.finditer(text):
            start = match.start() + len(match[0]) - len(match[0].lstrip())
            level = _INNER if text[match.start()] in " \t" else 1
            found[start] = Heading(level, match[match.lastindex or 0].rstrip(":."), start)
    for _, heading in sorted(found.items())[:_MOST_HEADINGS]:
        yield heading
