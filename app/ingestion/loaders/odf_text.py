"""Walk through an OpenDocument text in reading order: headings, lists, tables, text boxes, notes."""

from collections.abc import Iterator, Sequence

from lxml import etree

from app.domain import Extraction, Heading
from app.ingestion.loaders.canonical import Assembly, on_one_line
from app.ingestion.loaders.odf_content import PARAGRAPHS, STYLE, TABLE, TEXT, Content, Inline, count, is_left_out
from app.ingestion.port import Source

_DEEPEST_LIST = 8
_FALSE = "false"
_WORDS_AROUND_A_NUMBER = 4


def read_text(content: Content, source: Source) -> Extraction:
    """Return the text of an ODT with its headings; raises `DocumentLimitExceeded` and `EmptyDocument`."""
    assembly = Assembly(source.limits.max_characters)
    story = _Story(content, assembly)
    story.margins("header")
    story.blocks(content.body)
    story.notes()
    story.margins("footer")
    return Extraction(
        text=assembly.text(),
        parser="odt",
        media_type=source.media_type,
        source_type="odt",
        title=content.title or story.title or next((each.title for each in story.headings if each.level == 1), None),
        headings=tuple(story.headings),
        warnings=assembly.notices(),
    )


class _Story:
    """Write blocks into the assembly, counting notes and list items on the way."""

    def __init__(self, content: Content, assembly: Assembly) -> None:
        self.headings: list[Heading] = []
        self.title: str | None = None
        self._content = content
        self._assembly = assembly
        self._notes: list[etree._Element] = []
        self._numbers: dict[tuple[str, int], int] = {}
        self._after_list = False

    def margins(self, kind: str) -> None:
        """Write what stands above or below every page, equal ones once."""
        roots = () if self._content.styles is None else self._content.styles.iter(STYLE + kind)
        shown = (margin for margin in roots if margin.get(STYLE + "display") != _FALSE)
        telling = (margin for margin in shown if not _only_counts_pages(margin))
        for text in dict.fromkeys("\n".join(self._lines(margin)) for margin in telling):
            if text:
                self._assembly.add(text)

    def notes(self) -> None:
        """Write the footnotes and endnotes with their marks."""
        # A note inside a note is not followed: it would come twice.
        for mark, note in enumerate(tuple(self._notes), 1):
            text = "\n".join(line for body in note.iterchildren(TEXT + "note-body") for line in self._lines(body))
            if text:
                self._assembly.add(f"[{mark}] {text}")

    def blocks(self, container: etree._Element) -> None:
        """Write the paragraphs, lists and tables of a container in their order."""
        for element in container:
            if is_left_out(element):
                continue
            if element.tag in PARAGRAPHS:
                self._paragraph(element)
            elif element.tag == TEXT + "list":
                self._list(element)
            elif element.tag == TABLE + "table":
                self._table(element)
            else:
                self.blocks(element)

    def _paragraph(self, element: etree._Element) -> None:
        text, boxes = self._read(element)
        if text:
            start = self._assembly.add(text)
            self._after_list = False
            if element.tag == TEXT + "h":
                level = count(element.get(TEXT + "outline-level"), 1, 6)
                self.headings.append(Heading(max(level, 1), on_one_line(text), start))
            elif self.title is None and "Title" in self._content.style_names(
                element.get(TEXT + "style-name"), "paragraph"
            ):
                self.title = on_one_line(text)
        for box in boxes:
            self.blocks(box)

    def _list(self, element: etree._Element) -> None:
        boxes: list[etree._Element] = []
        for line in self._items(element, "", 1, boxes):
            self._assembly.add(line, "\n" if self._after_list else "\n\n")
            self._after_list = True
        for box in boxes:
            self.blocks(box)

    def _items(
        self, element: etree._Element, style_above: str, level: int, boxes: list[etree._Element]
    ) -> Iterator[str]:
        """Yield the lines of a list, indented by its level."""
        style = element.get(TEXT + "style-name") or style_above
        is_numbered = (style, level) in self._content.numbered_lists
        indent = "  " * min(level - 1, _DEEPEST_LIST)
        continues = element.get(TEXT + "continue-numbering") == "true" or element.get(TEXT + "continue-list")
        number = self._numbers.get((style, level), 0) if continues else 0
        for item in element.iterchildren(TEXT + "list-item", TEXT + "list-header"):
            number = count(item.get(TEXT + "start-value"), number + 1)
            self._numbers[style, level] = number
            mark = "" if item.tag == TEXT + "list-header" else f"{number}. " if is_numbered else "- "
            for inside in item.iterchildren(etree.Element):
                if inside.tag == TEXT + "list":
                    yield from self._items(inside, style, level + 1, boxes)
                elif inside.tag in PARAGRAPHS:
                    text, floating = self._read(inside)
                    boxes.extend(floating)
                    if text:
                        yield indent + mark + text
                        mark = " " * len(mark)

    def _table(self, table: etree._Element) -> None:
        rows = [list(cells_of(row)) for row in rows_of(table)]
        has_headings = next(table.iter(TEXT + "h"), None) is not None
        if has_headings or all(len(row) <= 1 for row in rows):
            # A table that only frames or places text reads as that text.
            for row in rows:
                for cell in row:
                    self.blocks(cell)
            return
        separator = "\n\n"
        for row in rows:
            cells = [on_one_line(" ".join(self._lines(cell))) for cell in row]
            if any(cells):
                self._assembly.add(" | ".join(cells), separator)
                self._after_list, separator = False, "\n"

    def _lines(self, container: etree._Element) -> Iterator[str]:
        """Yield a container's text line by line, for places that hold no blocks: cells, margins and notes."""
        for element in container:
            if is_left_out(element):
                continue
            if element.tag in PARAGRAPHS:
                text, boxes = self._read(element)
                if text:
                    yield text
                for box in boxes:
                    yield from self._lines(box)
            else:
                yield from self._lines(element)

    def _read(self, paragraph: etree._Element) -> tuple[str, Sequence[etree._Element]]:
        inline = Inline(self._note)
        return inline.text(paragraph), inline.boxes

    def _note(self, note: etree._Element) -> str:
        self._notes.append(note)
        return f"[{len(self._notes)}]"


def _only_counts_pages(margin: etree._Element) -> bool:
    """Tell `Page 3 of 7` from what says something."""
    words = "".join(margin.itertext()).split()
    return next(margin.iter(TEXT + "page-number"), None) is not None and len(words) <= _WORDS_AROUND_A_NUMBER


def rows_of(table: etree._Element) -> Iterator[etree._Element]:
    """Yield the rows of a table, those of its head and of groups too."""
    for element in table.iterchildren(etree.Element):
        if element.tag == TABLE + "table-row":
            yield element
        elif element.tag in (TABLE + "table-header-rows", TABLE + "table-rows", TABLE + "table-row-group"):
            yield from rows_of(element)


def cells_of(row: etree._Element) -> Iterator[etree._Element]:
    """Yield the cells of a row, covered ones too."""
    yield from row.iterchildren(TABLE + "table-cell", TABLE + "covered-table-cell")
