"""Write the slides of a presentation as pages, whatever program it comes from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.domain import Extraction, Heading, Notice, Page
from app.errors import DamagedDocument, DocumentLimitExceeded, EmptyDocument, NoExtractableText, UnusableDocument
from app.ingestion.loaders.canonical import Assembly
from app.ingestion.port import LoadLimits, Source

_REPORTED_SLIDES = 500


@dataclass(slots=True)
class Slide:
    """What a slide says; `footers` is what its foot says, which is mostly the same on every slide."""

    title: str = ""
    blocks: list[str] = field(default_factory=list)
    footers: list[str] = field(default_factory=list)
    notes: str = ""
    is_hidden: bool = False
    is_damaged: bool = False
    has_pictures: bool = False

    @property
    def says_something(self) -> bool:
        """Return whether there is text of the slide's own."""
        return bool(self.title or self.blocks or self.notes)


class Slides:
    """Write slide after slide, counting them."""

    def __init__(self, limits: LoadLimits) -> None:
        self._assembly = Assembly(limits.max_characters)
        self._max_slides = limits.max_pages
        self._pages: list[Page] = []
        self._headings: list[Heading] = []
        self._hidden: list[int] = []
        self._damaged: list[int] = []
        self._without_text: list[int] = []
        self._footers: set[str] = set()
        self._has_pictures = False
        self._title: str | None = None

    def add(self, slide: Slide) -> None:
        """Write one slide; a slide without text is a page without text. Raises `DocumentLimitExceeded`."""
        number = len(self._pages) + 1
        if number > self._max_slides:
            raise DocumentLimitExceeded(
                f"the presentation has more than {self._max_slides} slides",
                hint="split the file, or raise FOOTNOTE_MAX_PAGES",
            )
        self._has_pictures |= slide.has_pictures
        if number == 1:
            self._title = slide.title or None
        if slide.is_hidden:
            self._hidden.append(number)
        if slide.is_damaged:
            self._damaged.append(number)
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

    def extraction(self, source: Source, kind: str, title: str | None) -> Extraction:
        """Return what was written of a file of this kind.

        Raises `DamagedDocument`, `NoExtractableText` or `EmptyDocument` where there is no text.
        """
        if not self._headings:
            raise self._nothing()
        with_text = len(self._pages) - len(self._without_text)
        return Extraction(
            text=self._assembly.text(),
            parser=kind,
            media_type=source.media_type,
            source_type=kind,
            title=title or self._title,
            pages=tuple(self._pages),
            headings=tuple(self._headings),
            coverage=round(with_text / len(self._pages), 4),
            warnings=(*self._assembly.notices(), *self._notices()),
        )

    def _nothing(self) -> UnusableDocument:
        if self._damaged:
            return DamagedDocument(
                f"{len(self._damaged)} of {len(self._pages)} slides cannot be read, the rest is empty"
            )
        if self._has_pictures:
            return NoExtractableText(
                "the presentation has pictures and no text",
                hint="export it as a PDF, whose pages can be recognised",
                extra={"pages": len(self._pages)},
            )
        return EmptyDocument("the presentation holds no text")

    def _notices(self) -> Iterator[Notice]:
        if self._damaged:
            yield _notice("slides_not_read", "have parts that cannot be read", self._damaged, len(self._pages))
        if self._without_text:
            yield _notice("pages_without_text", "have no text", self._without_text, len(self._pages))
        if self._hidden:
            yield _notice("hidden_slides", "are hidden in the show and were read", self._hidden, len(self._pages))


def _notice(code: str, what: str, numbers: Sequence[int], total: int) -> Notice:
    detail = f"{len(numbers)} of {total} slides {what}"
    return Notice(code, detail, {"pages": list(numbers[:_REPORTED_SLIDES])})
