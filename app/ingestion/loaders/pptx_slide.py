"""Read one slide: its shapes in reading order, tables, charts and diagrams, the words of its pictures, its notes."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from lxml import etree

from app.errors import DamagedDocument
from app.ingestion.loaders.canonical import on_one_line
from app.ingestion.loaders.drawing import A, C, chart_lines, diagram_lines, lines, table_lines
from app.ingestion.loaders.office_package import MC, Package, R, Relation
from app.ingestion.loaders.slides import Slide

P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_DIAGRAM_IDS = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"

_TITLES = ("title", "ctrTitle")
_OF_THE_PAGE = ("sldNum", "dt", "hdr")
_FALSE = ("0", "false")


def read_slide(package: Package, name: str | None) -> Slide:
    """Return a slide by the name of its part, as far as its parts are there and sound."""
    slide = Slide()
    root = _tree(package, name, slide)
    if root is None or name is None:
        return slide
    slide.is_hidden = root.get("show") in _FALSE
    relations = package.relations(name)
    reading = _Reading(package, relations, slide)
    for tree in root.iterfind(f"{P}cSld/{P}spTree"):
        reading.shapes(tree)
    slide.notes = "\n".join(_notes(package, relations, slide))
    return slide


def _tree(package: Package, name: str | None, slide: Slide) -> etree._Element | None:
    """Return the root of a part; one that is missing or broken damages its slide alone."""
    try:
        root = package.tree(name) if name else None
    except DamagedDocument:
        root = None
    slide.is_damaged |= root is None
    return root


def _notes(package: Package, relations: Mapping[str, Relation], slide: Slide) -> Iterator[str]:
    for relation in relations.values():
        root = _tree(package, relation.target, slide) if relation.kind == "notesSlide" else None
        for shape in root.iter(P + "sp") if root is not None else ():
            body = shape.find(P + "txBody")
            if body is not None and _placeholder(shape) == "body":
                yield from lines(body)


class _Reading:
    """Fill a slide from its tree of shapes, which is in reading order."""

    def __init__(self, package: Package, relations: Mapping[str, Relation], slide: Slide) -> None:
        self.slide = slide
        self._package = package
        self._relations = relations

    def shapes(self, group: etree._Element) -> None:
        """Read the shapes of a group, and of the groups in it."""
        # The parser refuses trees that are too deep for this.
        for shape in group.iterchildren(etree.Element):
            if shape.tag == P + "sp":
                self._shape(shape)
            elif shape.tag == P + "graphicFrame":
                self._frame(shape)
            elif shape.tag == P + "pic":
                self._picture(shape)
            elif shape.tag in (P + "grpSp", MC + "Choice"):
                self.shapes(shape)
            elif shape.tag == MC + "AlternateContent":
                self._alternatives(shape)

    def _alternatives(self, alternatives: etree._Element) -> None:
        """Read the first rendition that says something."""
        before = len(self.slide.blocks)
        for rendition in alternatives.iterchildren(etree.Element):
            self.shapes(rendition)
            if len(self.slide.blocks) > before:
                return

    def _shape(self, shape: etree._Element) -> None:
        kind = _placeholder(shape)
        body = shape.find(P + "txBody")
        if body is None or kind in _OF_THE_PAGE:
            return
        text = "\n".join(lines(body))
        if not text:
            return
        if kind in _TITLES and not self.slide.title:
            self.slide.title = on_one_line(text)
        elif kind == "ftr":
            self.slide.footers.append(on_one_line(text))
        else:
            self.slide.blocks.append(text)

    def _frame(self, frame: etree._Element) -> None:
        found: list[str] = []
        for table in frame.iter(A + "tbl"):
            found.extend(table_lines(table))
        for reference in frame.iter(C + "chart"):
            found.extend(self._lines_of(reference.get(R + "id"), chart_lines))
        for reference in frame.iter(_DIAGRAM_IDS):
            found.extend(self._lines_of(reference.get(R + "dm"), diagram_lines))
        if found:
            self.slide.blocks.append("\n".join(found))

    def _lines_of(self, id_: str | None, read: Callable[[etree._Element], Iterable[str]]) -> Iterator[str]:
        relation = self._relations.get(id_ or "")
        root = _tree(self._package, relation.target if relation else None, self.slide)
        if root is not None:
            yield from read(root)

    def _picture(self, picture: etree._Element) -> None:
        self.slide.has_pictures = True
        properties = picture.find(f"{P}nvPicPr/{P}cNvPr")
        description = "" if properties is None else on_one_line(properties.get("descr", ""))
        if description:
            self.slide.blocks.append(description)


def _placeholder(shape: etree._Element) -> str | None:
    """Return which of the layout's places the shape fills, `None` for none."""
    place = shape.find(f"{P}nvSpPr/{P}nvPr/{P}ph")
    return None if place is None else place.get("type", "obj")
