"""BM25 on disk with tantivy; one index per collection, shared by every process.

Terms come from our analyzer and are joined by spaces, so tantivy's own tokenizer only splits them again. The revision
stands in a file of its own, written after the content is committed. It is no document of the index, because BM25 would
count it, and each of its dead predecessors, among the chunks.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from tantivy import DocAddress, IndexWriter, Query, Searcher

from app.indexes.local.keyword_files import (
    DamagedIndex,
    Fields,
    Stamp,
    commit_stamp,
    make_anew,
    open_files,
    raise_unless_damage,
    read_revision,
    write_revision,
)
from app.indexes.local.keyword_query import Queries, both
from app.indexes.local.lock import WriteLock
from app.indexes.port import PLAIN, Candidates, IndexEntry, Restriction, Wording
from app.stores.port import Keys, Scope, VectorField

_HEAP_BYTES = 50_000_000
_COUNTED_FREQUENCY = 1000
_SPARE_HITS = 32
_LONGEST_TIE = 8192


@dataclass(frozen=True, slots=True)
class _View:
    """The index as of one commit; another `stamp` on disk tells that there is a newer one."""

    stamp: Stamp | None
    searcher: Searcher
    revision: int
    size: int
    deleted: int


class TantivyKeywordIndex:
    """The keyword index of one collection, in `folder`; its lock stands beside the folder.

    `signature` names the analysis that makes the terms: an index of another one is made anew, empty.
    """

    wants_terms: ClassVar[bool] = True
    wants_vectors: ClassVar[bool] = False

    def __init__(self, folder: Path, signature: str) -> None:
        self.field: VectorField = "context"
        self._folder = folder
        self._fields = Fields.of(signature)
        self._queries = Queries(self._fields.schema, self._fields.present)
        self._lock = WriteLock(folder.with_name(f"{folder.name}.lock"))
        self._writer: IndexWriter | None = None
        self._looking = threading.Lock()
        self._index = open_files(folder, self._fields.schema, self._lock, locked=False)
        self._shown = self._look()

    # --- follow ---

    def revision(self) -> int:
        """Return the store revision this index has reached."""
        return self._view().revision

    def size(self) -> int:
        """Return how many chunks it holds."""
        return self._shown.size

    def erase(self) -> bool:
        """Remove files that no commit needs; return False while a segment still holds deleted chunks."""
        if self._view(locked=True).deleted:
            return False
        self._writer = self._writer or self._new_writer()
        self._writer.garbage_collect_files()
        return True

    def is_worn(self) -> bool:
        """Return whether more chunks are deleted than live; tantivy keeps them until their segment is merged."""
        view = self._view()
        return view.deleted > max(_COUNTED_FREQUENCY, view.size)

    def keys(self) -> Keys:
        """Return every chunk key, sorted."""
        view = self._view()
        if not view.size:
            return np.zeros(0, np.int64)
        hits = view.searcher.search(self._queries.any_of(self._fields.present, [1]), view.size, count=False).hits
        return np.sort(_column(view.searcher, "chunk", [address for _, address in hits]))

    def close(self) -> None:
        """Do nothing: the files are only mapped, until the last searcher is gone."""

    @contextmanager
    def writing(self) -> Iterator[bool]:
        """Hold the exclusive right to `apply` and `replace`; yields False at once where another holds it."""
        with self._lock.held() as granted:
            if not granted:
                yield False
                return
            self._view(locked=True)
            try:
                yield True
            finally:
                writer, self._writer = self._writer, None
                if writer is not None:
                    # A writer that is only dropped breaks off its merges, and small segments would pile up.
                    writer.wait_merging_threads()

    def apply(self, upserts: Sequence[IndexEntry], deletes: Sequence[int], revision: int) -> None:
        """Commit the changes, then the revision; a chunk that is there already is left as it is."""
        there = self._held(self._view(locked=True), [entry.chunk_key for entry in upserts])
        missing = [entry for entry in upserts if entry.chunk_key not in there]
        if not missing and not deletes:
            write_revision(self._folder, revision)
            return
        with self._commit(revision) as writer:
            # Deleting by a term takes the key for a signed integer and so finds nothing.
            writer.delete_documents_by_query(self._queries.any_of("chunk", deletes))
            for entry in missing:
                writer.add_document(self._fields.chunk(entry))

    def replace(self, batches: Iterable[Sequence[IndexEntry]], revision: int) -> None:
        """Commit these entries as the whole content, then the revision."""
        if revision < self._view(locked=True).revision:
            # Of a store that was restored: content of this revision must never be taken for the later one's.
            write_revision(self._folder, 0)
        with self._commit(revision) as writer:
            # `delete_all_documents` would let files go that other processes still read until the commit.
            writer.delete_documents_by_query(Query.all_query())
            for batch in batches:
                for entry in batch:
                    writer.add_document(self._fields.chunk(entry))

    # --- search ---

    def document_frequencies(self, terms: Sequence[str]) -> list[int]:
        """Return in how many chunks each term occurs.

        While deleted chunks wait to be merged away, that of a term in more than a thousand chunks is an estimate.
        """
        view = self._shown
        return [self._frequency(view, term) for term in terms]

    def search(self, terms: Sequence[str], limit: int, scope: Scope, wording: Wording = PLAIN) -> Candidates:
        """Return up to `limit` chunks of the scope by BM25 (k1 1.2, b 0.75); a repeated term counts that often."""
        view = self._shown
        query = self._queries.ranking(terms, wording)
        if query is None or scope.is_empty or limit < 1:
            return Candidates(np.zeros(0, np.int64), np.zeros(0, np.float32))
        admitted: dict[str, Keys] = {}
        for field, keys in (("document", scope.document_keys), ("chunk", wording.inside)):
            if keys is None:
                continue
            # A clause costs about 2 us a key, and each hit to choose from 0.3 us: take whichever is less.
            if 4 * len(keys) ** 2 <= limit * view.size:
                query = both(query, self._queries.any_of(field, keys.tolist()))
            else:
                admitted[field] = keys
        return _best(view.searcher, query, limit, admitted)

    def holding(self, restriction: Restriction, limit: int, scope: Scope) -> Keys | None:
        """Return the sorted keys of the scope's chunks that the restriction admits, `None` where more than `limit`."""
        view = self._shown
        if scope.is_empty or not view.size:
            return np.zeros(0, np.int64)
        hits = view.searcher.search(self._queries.admitting(restriction), limit + 1, count=False).hits
        if len(hits) > limit:
            return None
        addresses = [address for _, address in hits]
        keys = _column(view.searcher, "chunk", addresses)
        if scope.document_keys is not None:
            keys = keys[np.isin(_column(view.searcher, "document", addresses), scope.document_keys)]
        return np.sort(keys)

    def admitted(self, restriction: Restriction, chunk_keys: Keys) -> Keys:
        """Return those of the chunks that the restriction admits, in the order given."""
        if not len(chunk_keys):
            return chunk_keys
        view = self._shown
        query = both(self._queries.admitting(restriction), self._queries.any_of("chunk", chunk_keys.tolist()))
        hits = view.searcher.search(query, len(chunk_keys), count=False).hits
        return chunk_keys[np.isin(chunk_keys, _column(view.searcher, "chunk", [address for _, address in hits]))]

    def terms_with_prefix(self, prefix: str, limit: int) -> list[str]:
        """Return the terms that begin so, those of the most chunks first."""
        return [term for term, _ in self._shown.searcher.terms_with_prefix("text", prefix, limit=limit)]

    def _frequency(self, view: _View, term: str) -> int:
        frequency = view.searcher.doc_freq("text", term)
        if not view.deleted or not frequency:
            return frequency
        if frequency <= _COUNTED_FREQUENCY:
            result = view.searcher.search(self._queries.holds(term), 1, count=True)
            return int(result.count)  # type: ignore[attr-defined]  # missing from the package's stubs
        return min(view.size, max(1, round(frequency * view.size / (view.size + view.deleted))))

    def _held(self, view: _View, chunk_keys: Sequence[int]) -> set[int]:
        """Return those of the chunks that the index holds."""
        if not view.size or not chunk_keys:
            return set()
        hits = view.searcher.search(self._queries.any_of("chunk", chunk_keys), len(chunk_keys), count=False).hits
        return set(_column(view.searcher, "chunk", [address for _, address in hits]).tolist())

    # --- files ---

    def _view(self, *, locked: bool = False) -> _View:
        """Return the newest commit on disk."""
        if self._shown.stamp != commit_stamp(self._folder):
            with self._looking:
                if self._shown.stamp != commit_stamp(self._folder):
                    try:
                        self._shown = self._look()
                    except (ValueError, OSError) as error:
                        raise_unless_damage(error)
                        self._index = open_files(self._folder, self._fields.schema, self._lock, locked=locked)
                        self._shown = self._look()
        return self._shown

    def _look(self) -> _View:
        # Both taken before the reload: content may be newer than they say, which the next look tells, never older.
        stamp = commit_stamp(self._folder)
        revision = read_revision(self._folder)
        self._index.reload()
        searcher = self._index.searcher()
        size = searcher.num_docs
        deleted = searcher.doc_freq(self._fields.present, 1) - size
        return _View(stamp=stamp, searcher=searcher, revision=revision, size=size, deleted=deleted)

    @contextmanager
    def _commit(self, revision: int) -> Iterator[IndexWriter]:
        # Kept only after a commit: whatever else was given to a writer that is closed is forgotten.
        writer, self._writer = self._writer or self._new_writer(), None
        try:
            yield writer
            self._finish(writer, revision)
        except BaseException as error:
            # The error's traceback would keep the writer, and with it tantivy's own lock.
            with suppress(ValueError):
                writer.wait_merging_threads()
            if isinstance(error, DamagedIndex):
                self._index = make_anew(self._folder, self._fields.schema, error)
            raise
        self._writer = writer
        self._view(locked=True)

    def _finish(self, writer: IndexWriter, revision: int) -> None:
        try:
            writer.commit()
        except ValueError as error:
            raise_unless_damage(error)
            raise DamagedIndex(f"the keyword index is damaged and will be built anew: {error}") from error
        write_revision(self._folder, revision)

    def _new_writer(self) -> IndexWriter:
        # Opened again, because tantivy keeps its list of files in memory and other processes have written since:
        # it would leave their files for ever, and stumble over those of a process that was killed in its commit.
        writer = open_files(self._folder, self._fields.schema, self._lock, locked=True).writer(_HEAP_BYTES, 1)
        writer.garbage_collect_files()
        return writer


def _best(searcher: Searcher, query: Query, limit: int, admitted: Mapping[str, Keys]) -> Candidates:
    """Return the best hits whose number in each field is admitted, fetching more until none can be missing."""
    fetch = 4 * limit + _SPARE_HITS if admitted else limit + _SPARE_HITS
    while True:
        hits = searcher.search(query, fetch, count=False).hits
        addresses = [address for _, address in hits]
        scores = np.fromiter((score for score, _ in hits), np.float32, len(hits))
        keys = _column(searcher, "chunk", addresses)
        worst = scores[-1] if len(hits) == fetch else -np.inf
        if admitted:
            columns = [np.isin(_column(searcher, field, addresses), numbers) for field, numbers in admitted.items()]
            inside = np.logical_and.reduce(columns)
            scores, keys = scores[inside], keys[inside]
        # Hits that tie with the last one wanted must all be there, for the smaller keys to win.
        is_whole = len(keys) >= limit and (scores[limit - 1] > worst or fetch >= _LONGEST_TIE)
        if len(hits) < fetch or is_whole:
            order = np.lexsort((keys, -scores))[:limit]
            return Candidates(keys[order], scores[order])
        fetch = max(2 * fetch, limit * fetch * 5 // (4 * max(1, len(keys))))


def _column(searcher: Searcher, field: str, addresses: list[DocAddress]) -> NDArray[np.int64]:
    return np.array(searcher.fast_field_values(field, addresses), np.int64)
