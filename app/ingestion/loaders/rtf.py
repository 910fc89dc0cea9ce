"""RTF: headers, then the body with its lists and tables, then footnotes and footers; hidden and deleted text is out."""

from collections.abc import Iterator, Sequence

from app.domain import Extraction, Heading, Notice
from app.errors import DamagedDocument
from app.ingestion.loaders.canonical import Assembly, on_one_line
from app.ingestion.loaders.rtf_flow import Flow
from app.ingestion.loaders.rtf_reader import Story, read
from app.ingestion.port import Source

MEDIA_TYPES = ("application/rtf",)


def load(source: Source) -> Extraction:
    """Read rich text; raises `DamagedDocument`, `DocumentLimitExceeded` and `EmptyDocument`."""
    data = source.path.read_bytes()
    if b"{\\rtf" not in data[:1024]:
        raise DamagedDocument("the file is named or declared as rich text, but its content is something else")
    story = read(data)
    assembly = Assembly(source.limits.max_characters)
    headings = _write(story, assembly)
    return Extraction(
        text=assembly.text(),
        parser="rtf",
        media_type=source.media_type,
        source_type="rtf",
        title=on_one_line(story.title) or next((each.title for each in headings if each.level == 1), None),
        headings=tuple(headings),
        warnings=(*assembly.notices(), *_notices(story)),
    )


def _write(story: Story, assembly: Assembly) -> list[Heading]:
    headings: list[Heading] = []
    _write_margins(story.headers, assembly)
    for block in story.body.blocks:
        start = assembly.add(block.text, "\n" if block.follows else "\n\n")
        if block.level:
            headings.append(Heading(min(block.level, 6), on_one_line(block.text), start))
    for mark, note in enumerate(story.notes, 1):
        if note.blocks:
            assembly.add(f"[{mark}] {note.text()}")
    _write_margins(story.footers, assembly)
    return headings


def _write_margins(margins: Sequence[Flow], assembly: Assembly) -> None:
    """Write what stands above or below pages, equal ones once; a page's number alone says nothing."""
    for text in dict.fromkeys(margin.text() for margin in margins):
        if any(map(str.isalpha, text)):
            assembly.add(text)


def _notices(story: Story) -> Iterator[Notice]:
    if story.undecoded:
        detail = f"{story.undecoded} bytes are no character of their code page and were left out"
        yield Notice("characters_removed", detail, {"count": story.undecoded})
    if story.is_cut_off:
        yield Notice("file_cut_off", "the file ends amid its text, and was read as far as it goes")
