"""PPTX: the slides in order, each a page: its title as heading, its shapes, its notes, marked as notes."""

from collections.abc import Iterator, Sequence

from lxml import etree

from app.domain import Extraction, Heading, Notice, Page
from app.errors import DamagedDocument, DocumentLimitExceeded, EmptyDocument, NoExtractableText
from app.ingestion.loaders.canonical import Assembly
from app.ingestion.loaders.office_package import Package, R, open_package
from app.ingestion.loaders.pptx_slide import P, Slide, read_slide
from app.ingestion.port import Source

MEDIA_TYPES = ("application/vnd.openxmlformats-officedocument.presentationml.presentation",)

_REPORTED_SLIDES = 500


def load(source: Source) -> Extraction:
    """Read a presentation, hidden slides too.

    Raises `PasswordRequired`, `DamagedDocument`, `DocumentLimitExceeded`, `NoExtractableText` and `EmptyDocument`.
    """
    with open_package(source) as package:
        names = _slide_names(package)
        if len(names) > source.limits.max_pages:
            raise DocumentLimitExceeded(
                f"the presentation has {len(names)} slides, {source.limits.max_pages} are allowed",
                hint="split the file, or raise FOOTNOTE_MAX_PAGES",
            )
        story = _Story(source.limits.max_characters)
        for name in names:
            story.add(read_slide(package, name))
        return story.extraction(source, package.title())


class _Story:
    """Write slide after slide, counting them."""

    def __init__(self, max_characters: int) -> None:
        self._assembly = Assembly(max_characters)
        self._pages: list[Page] = []
        self._headings: list[Heading] = []
        self._hidden: list[int] = []
        self._without_text: list[int] = []
        self._footers: set[str] = set()
        self._has_pictures = False
        self._title: str | None = None

    def add(self, slide: Slide) -> None:
        """Write one slide; a slide without text is a page without text."""
        number = len(self._pages) + 1
        self._has_pictures |= slide.has_pictures
        if number == 1:
            self._title = slide.title or None
        if slide.is_hidden:
            self._hidden.append(number)
        start = self._write(slide, number) if slide.says_something else None
        if start is None:
            self._without_text.append(number)
        end = self._assembly.length
        self._pages.append(Page(number, end if start is None else start, end))

    def _write(self, slide: Slide, number: int) -> int:
        title = slide.title or f"Slide {number}"
        start = self._assembly.add(title)
        self._headings.append(Heading(1, title, start))
        for block in slide.blocks:
            self._assembly.add(block)
        # What stands at the foot of every slide is said once.
        for footer in slide.footers:
            if footer not in self._footers:
                self._footers.add(footer)
                self._assembly.add(footer)
        if slide.notes:
            self._assembly.add(f"Notes: {slide.notes}")
        return start

    def extraction(self, source: Source, title: str | None) -> Extraction:
        """Return what was written; raises `NoExtractableText` for pictures only and `EmptyDocument` for nothing."""
        if not self._headings:
            raise self._nothing()
        with_text = len(self._pages) - len(self._without_text)
        return Extraction(
            text=self._assembly.text(),
            parser="pptx",
            media_type=source.media_type,
            source_type="pptx",
            title=title or self._title,
            pages=tuple(self._pages),
            headings=tuple(self._headings),
            coverage=round(with_text / len(self._pages), 4),
            warnings=(*self._assembly.notices(), *self._notices()),
        )

    def _nothing(self) -> EmptyDocument | NoExtractableText:
        if self._has_pictures:
            return NoExtractableText(
                "the presentation has pictures and no text",
                hint="export it as a PDF, whose pages can be recognised",
                extra={"pages": len(self._pages)},
            )
        return EmptyDocument("the presentation holds no text")

    def _notices(self) -> Iterator[Notice]:
        if self._without_text:
            yield _notice("pages_without_text", "have no text", self._without_text, len(self._pages))
        if self._hidden:
            yield _notice("hidden_slides", "are hidden in the show and were read", self._hidden, len(self._pages))


def _notice(code: str, what: str, numbers: Sequence[int], total: int) -> Notice:
    detail = f"{len(numbers)} of {total} slides {what}"
    return Notice(code, detail, {"pages": list(numbers[:_REPORTED_SLIDES])})


def _slide_names(package: Package) -> list[str | None]:
    """Return the part of each slide in the order of the show, `None` for one that is not there."""
    main = package.main_part("ppt/presentation.xml")
    presentation = package.tree(main)
    if presentation is None or presentation.tag != P + "presentation":
        raise DamagedDocument("the container holds no presentation")
    relations = package.relations(main)
    found: Sequence[etree._Element] = presentation.findall(f"{P}sldIdLst/{P}sldId")
    ids = [slide.get(R + "id", "") for slide in found]
    return [relations[id_].target if id_ in relations else None for id_ in ids]
