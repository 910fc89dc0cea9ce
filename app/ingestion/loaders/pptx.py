"""PPTX: the slides in order, each a page: its title as heading, its shapes, its notes, marked as notes."""

from collections.abc import Sequence

from lxml import etree

from app.domain import Extraction
from app.errors import DamagedDocument
from app.ingestion.loaders.office_package import Package, R, open_package
from app.ingestion.loaders.pptx_slide import P, read_slide
from app.ingestion.loaders.slides import Slides
from app.ingestion.port import Source

MEDIA_TYPES = ("application/vnd.openxmlformats-officedocument.presentationml.presentation",)


def load(source: Source) -> Extraction:
    """Read a presentation, hidden slides too.

    Raises `PasswordRequired`, `DamagedDocument`, `DocumentLimitExceeded`, `NoExtractableText` and `EmptyDocument`.
    """
    with open_package(source) as package:
        slides = Slides(source.limits)
        for name in _slide_names(package):
            slides.add(read_slide(package, name))
        return slides.extraction(source, "pptx", package.title())


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
