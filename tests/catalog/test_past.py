"""What the catalog quotes of documents is erased, but for what can still be retried."""

from collections.abc import Sequence
from pathlib import Path

from app.catalog.collections import Collection, Collections
from app.catalog.database import Database
from app.catalog.idempotency import Idempotency
from app.catalog.job import Job
from app.catalog.jobs import Jobs


def end(jobs: Jobs, collection: Collection, document_id: str, state: str) -> str:
    """Queue a job whose payload quotes its document, and end it."""
    job = jobs.enqueue(
        "ingest",
        collection_id=collection.id,
        collection=collection.name,
        document_id=document_id,
        payload={"title": f"quagmire {document_id}"},
    )
    assert jobs.claim("me") is not None
    jobs.finish(job.id, "me", state)
    return job.id


def test_finished_jobs_and_answers_go_for_good_and_what_can_be_retried_stays(tmp_path: Path) -> None:
    database = Database(tmp_path / "catalog.db")
    database.migrate()
    collections, jobs = Collections(database), Jobs(database, max_queued=100, lease_seconds=60)
    ours, theirs = (collections.create(name, settings={}) for name in ("ours", "theirs"))
    memory = Idempotency(database, 24)
    memory.begin("scope", "key", "print", collection_id=ours.id)
    memory.finish("scope", "key", 200, {}, b"quagmire answer")
    end(jobs, ours, "done", "succeeded")
    end(jobs, ours, "gone", "failed")
    kept = end(jobs, ours, "kept", "failed")
    other = end(jobs, theirs, "other", "succeeded")
    waiting = jobs.enqueue("ingest", collection_id=ours.id, collection="ours", document_id="new", payload={})
    asked: list[list[str | None]] = []

    def retried(failed: Sequence[Job]) -> set[str]:
        asked.append([job.document_id for job in failed])
        return {kept}

    assert collections.erase_past(ours, retried) == 2
    assert asked == [["gone", "kept"]]
    assert {job.id for job in jobs.list(None, limit=10)[0]} == {kept, other, waiting.id}
    assert memory.begin("scope", "key", "print", collection_id=ours.id) is None
    database.close()
    left = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"quagmire kept" in left
    assert b"quagmire other" in left
    assert not any(word in left for word in (b"quagmire done", b"quagmire gone", b"quagmire answer"))
