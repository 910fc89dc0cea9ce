"""Ingest folders: find their files, give each a stable document id, and drop documents whose file is gone."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from app.catalog.collections import Collection
from app.catalog.job import Job, JobState
from app.catalog.jobs import Jobs
from app.domain import Document
from app.errors import Conflict, FootnoteError, NotFound
from app.filters import And, Condition, Filter, Operator
from app.ingestion.attachments import ATTACHMENTS
from app.ingestion.ingest import Ingestion
from app.ingestion.submission import Submission
from app.stores.port import CollectionStore

PATH_FIELD = "path"
SOURCE_FIELD = "source"
"""Metadata fields of every document that comes from a folder: where in it, and which folder."""

PAGE = 200

SHOW_SECONDS = 0.25
"""Longest time without a look at how far the files are."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to ingest: where it is, its path below the folder that was named, and that folder."""

    file: Path
    path: str
    source: str

    @property
    def document_id(self) -> str:
        """Return an id that is the same for the same path below the same folder's name, and legal in a URL."""
        stem = re.sub(r"[^\w.-]+", "-", self.file.name).strip(".-")[:80] or "file"
        digest = hashlib.sha256(f"{self.source}\0{self.path}".encode("utf-8", "surrogateescape")).hexdigest()
        return f"{stem}-{digest[:10]}"

    @property
    def metadata(self) -> dict[str, str]:
        """Return what the document remembers of its file."""
        return {PATH_FIELD: self.path, SOURCE_FIELD: self.source}


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that is not ingested, and why."""

    file: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Scan:
    """What is below the named paths; `present` holds every path on disk, skipped ones too."""

    files: tuple[FoundFile, ...]
    skipped: tuple[SkippedFile, ...]
    sources: tuple[str, ...]
    present: frozenset[tuple[str, str]]


def scan(paths: Iterable[Path], *, max_bytes: int) -> Scan:
    """Walk folders recursively; skip hidden, empty, oversized and unreadable files, and say so.

    Symbolic links to folders are not followed, so that a loop ends. Raises `NotFound` for a path that does not exist.
    """
    files: list[FoundFile] = []
    skipped: list[SkippedFile] = []
    sources: list[str] = []
    present: set[tuple[str, str]] = set()
    for named in paths:
        root = named.resolve()
        if not root.exists():
            raise NotFound(f"{named} does not exist")
        folder = root if root.is_dir() else root.parent
        if root.is_dir():
            sources.append(str(folder))
        for file in _walk(root):
            found = FoundFile(file, file.relative_to(folder).as_posix(), str(folder))
            present.add((found.source, found.path))
            reason = _why_skipped(found, max_bytes)
            if reason is None:
                files.append(found)
            else:
                skipped.append(SkippedFile(file, reason))
    return Scan(tuple(files), tuple(skipped), tuple(sources), frozenset(present))


def missing_documents(store: CollectionStore, found: Scan) -> list[Document]:
    """Return documents that came from a scanned folder and whose file is no longer there."""
    missing: list[Document] = []
    for source in found.sources:
        missing += [
            document
            for document in _documents_of(store, source)
            if (source, str(document.metadata.get(PATH_FIELD))) not in found.present
        ]
    return missing


def _documents_of(store: CollectionStore, source: str) -> Iterator[Document]:
    from_source: Filter = And(
        (Condition(SOURCE_FIELD, Operator.EQ, source), Condition(PATH_FIELD, Operator.EXISTS, True))
    )
    cursor: str | None = None
    while True:
        page = store.list_documents(from_source, limit=PAGE, cursor=cursor)
        yield from page.data
        cursor = page.next_cursor
        if cursor is None:
            return


def _walk(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for entry in sorted(root.iterdir()):
        if entry.is_dir() and not entry.is_symlink() and not entry.name.startswith("."):
            yield from _walk(entry)
        else:
            yield entry


def _why_skipped(found: FoundFile, max_bytes: int) -> str | None:
    if found.file.name.startswith("."):
        return "hidden"
    if found.file.is_dir():
        return "a link to a folder"
    try:
        size = found.file.stat().st_size
        with found.file.open("rb"):
            pass
    except OSError as error:
        return f"unreadable: {error.strerror}"
    if size == 0:
        return "empty"
    if size > max_bytes:
        return f"{size:,} bytes are more than FOOTNOTE_MAX_UPLOAD_BYTES ({max_bytes:,})"
    return None


@dataclass(frozen=True, slots=True)
class FileInWork:
    """A file whose job runs, and how much of the job's present stage is done."""

    path: str
    job_id: str
    stage: str | None
    done: int
    total: int | None
    unit: str | None


class Progress(AbstractContextManager[Any], Protocol):
    """Hear how many files of how many are done, and which are in work."""

    def __call__(self, done: int, total: int, in_work: Sequence[FileInWork] = ()) -> None:
        """Take note."""
        ...


@dataclass(frozen=True, slots=True)
class FailedFile:
    """A file that could not be ingested: where it is, the error's code and sentences."""

    path: str
    code: str
    detail: str
    hint: str | None = None


@dataclass(slots=True)
class FolderOutcome:
    """How many files ended in each way, and those that failed."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[FailedFile] = field(default_factory=list)
    attached: dict[str, FoundFile] = field(default_factory=dict)
    """The jobs of files that came inside others."""


@dataclass(frozen=True, slots=True)
class FolderIngest:
    """Submit a scan's files to one collection and wait for their jobs, a bounded number at a time."""

    ingestion: Ingestion
    jobs: Jobs
    collection: Collection
    sync: bool = False
    in_flight: int = 32
    password: str | None = field(default=None, repr=False)
    """Opens whatever file is encrypted."""

    def run(self, found: Scan, progress: Progress) -> FolderOutcome:
        """Do it and return what became of the files; a failed file stops no other."""
        outcome = FolderOutcome()
        waiting: dict[str, FoundFile] = {}
        total = len(found.files)
        with progress:
            for taken, file in enumerate(found.files, 1):
                job = self._submit(file, outcome)
                if job is not None:
                    waiting[job.id] = file
                progress(taken - len(waiting), total)
                while len(waiting) >= self.in_flight:
                    progress(taken - len(waiting), total, self._settle(waiting, outcome))
            while waiting:
                in_work = self._settle(waiting, outcome)
                progress(total - len(waiting), total, in_work)
            while outcome.attached:
                progress(total, total, self._settle(outcome.attached, outcome))
            if self.sync:
                outcome.counts["deleted"] += self._delete_missing(found)
        outcome.counts = Counter({name: count for name, count in outcome.counts.items() if count})
        return outcome

    def _submit(self, file: FoundFile, outcome: FolderOutcome) -> Job | None:
        try:
            submitted = self.ingestion.submit(
                self.collection,
                Submission(
                    document_id=file.document_id,
                    original=self.ingestion.originals(self.collection.id).copy(file.file),
                    filename=file.file.name,
                    metadata=file.metadata,
                    password=self.password,
                ),
            )
        except FootnoteError as error:
            self._fail(file, error.problem(), outcome)
            return None
        except OSError as error:
            self._fail(file, {"code": "unreadable", "detail": error.strerror or str(error)}, outcome)
            return None
        if submitted.job is None:
            outcome.counts[submitted.outcome] += 1
        return submitted.job

    def _settle(self, waiting: dict[str, FoundFile], outcome: FolderOutcome) -> list[FileInWork]:
        """Wait a moment for the oldest job, count the jobs that have ended and return those that run."""
        with suppress(NotFound):
            self.jobs.wait(next(iter(waiting)), timeout=SHOW_SECONDS)
        jobs = self.jobs.several(waiting)
        # A compaction beside this erases what has ended.
        for job_id in waiting.keys() - {job.id for job in jobs}:
            problem = Conflict("the file's job was erased before its end was seen", hint="ingest the folder again")
            self._fail(waiting.pop(job_id), problem.problem(), outcome)
        for job in jobs:
            if job.is_finished:
                self._count(waiting.pop(job.id), job, outcome)
        return [
            FileInWork(
                waiting[job.id].path, job.id, job.stage, job.progress.done, job.progress.total, job.progress.unit
            )
            for job in jobs
            if job.state is JobState.RUNNING
        ]

    def _count(self, file: FoundFile, job: Job, outcome: FolderOutcome) -> None:
        if job.result is not None:
            outcome.counts[job.result["outcome"]] += 1
            for attached in job.result.get(ATTACHMENTS, []):
                if attached["job_id"]:
                    inside = f" › {attached['document_id']}"
                    outcome.attached[attached["job_id"]] = replace(
                        file, file=Path(f"{file.file}{inside}"), path=file.path + inside
                    )
        else:
            self._fail(file, job.error or {}, outcome)

    def _fail(self, file: FoundFile, problem: dict[str, Any], outcome: FolderOutcome) -> None:
        outcome.counts["failed"] += 1
        code, detail = problem.get("code", "unknown"), problem.get("detail", "")
        outcome.failures.append(FailedFile(str(file.file), code, detail, problem.get("hint")))

    def _delete_missing(self, found: Scan) -> int:
        with self.ingestion.opened.get(self.collection.id) as opened:
            missing = missing_documents(opened.store, found)
        return self.ingestion.delete(self.collection, [document.id for document in missing])
