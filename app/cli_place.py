"""Say where in a document a passage stands, in the words of its format."""

from collections.abc import Sequence

from app.domain import Citation, Passage
from app.stores.port import CollectionStore

PAGES_CALLED = {"pptx": "slide", "odp": "slide"}
"""What a page is called where it is not a page, by the document's source type."""


class Places:
    """Name the places of one collection's passages."""

    def __init__(self, store: CollectionStore) -> None:
        self._store = store

    def of_passage(self, passage: Passage) -> tuple[str, ...]:
        """Return the title (or the id), the headings with the rows of a sheet, and the page."""
        return self._parts(passage, passage.document_id, passage.heading_path, passage.page_start)

    def of_citation(self, citation: Citation, sources: Sequence[Passage]) -> tuple[str, ...]:
        """Return the same of a citation of one of these sources."""
        source = sources[citation.marker - 1]
        return self._parts(source, citation.document_id, citation.heading_path, citation.page)

    def _parts(self, source: Passage, document_id: str, headings: Sequence[str], page: int | None) -> tuple[str, ...]:
        title = source.title or document_id
        below = " › ".join(heading for heading in headings if heading != title)
        named = f"{self._page_word(document_id)} {page}" if page else ""
        return tuple(part for part in (title, below, named) if part)

    def _page_word(self, document_id: str) -> str:
        document = self._store.document(document_id)
        return PAGES_CALLED.get(document.source_type, "page") if document else "page"
