"""Gather the paragraphs and table rows of rich text as they end."""

from dataclasses import dataclass, field

from app.ingestion.loaders.canonical import on_one_line


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph or a row; `level` is a heading's, from 1. One that `follows` goes on a line right below."""

    text: str
    level: int | None = None
    follows: bool = False


@dataclass(slots=True)
class Flow:
    """One stream of text: the body, a header, a footnote."""

    blocks: list[Block] = field(default_factory=list)
    boxes: list["Flow"] = field(default_factory=list)
    """Text boxes that float from the present paragraph."""
    _text: list[str] = field(default_factory=list)
    _cells: list[str] = field(default_factory=list)
    _mark: str = ""
    _last: str = ""

    def write(self, text: str) -> None:
        """Append to the present paragraph."""
        self._text.append(text)

    def mark(self, label: str) -> None:
        """Begin a list item with what is written before it; a sign that is no letter or digit is a bullet."""
        label = label.strip()
        self._mark = f"{label} " if any(map(str.isalnum, label)) else "- "

    def end_paragraph(self, level: int | None, *, in_table: bool) -> None:
        """End the present paragraph; in a table it is a line of its cell."""
        if in_table:
            self._text.append("\n")
            return
        text = _without_halves("".join(self._text)).strip()
        self._text.clear()
        kind = "item" if self._mark else "paragraph"
        if text:
            self._add(self._mark + text, level, kind)
        self._mark = ""
        self._end_boxes()

    def end_cell(self) -> None:
        """End the present cell."""
        self._cells.append(on_one_line(self._mark + _without_halves("".join(self._text))))
        self._text.clear()
        self._mark = ""

    def end_row(self) -> None:
        """End the present row; one of a single cell only frames its text."""
        if len(self._cells) == 1:
            self._add(self._cells[0], None, "paragraph")
        elif any(self._cells):
            self._add(" | ".join(self._cells), None, "row")
        self._cells.clear()
        self._end_boxes()

    def end(self) -> None:
        """End what is still open."""
        if self._cells:
            self.end_cell()
            self.end_row()
        self.end_paragraph(None, in_table=False)

    def text(self) -> str:
        """Return the whole, a line for each block."""
        return "\n".join(block.text for block in self.blocks)

    def _end_boxes(self) -> None:
        boxes, self.boxes = self.boxes, []
        for box in boxes:
            box.end()
            self.blocks.extend(box.blocks)
            self._last = ""

    def _add(self, text: str, level: int | None, kind: str) -> None:
        if text:
            self.blocks.append(Block(text, level, follows=kind != "paragraph" and kind == self._last))
            self._last = kind


def _without_halves(text: str) -> str:
    """Join the halves in which characters beyond the first plane are written."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
