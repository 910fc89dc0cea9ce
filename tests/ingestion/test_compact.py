"""What only grows stays within bounds between two compactions."""

from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from app.bootstrap import build_services
from app.catalog.job import Job
from app.ingestion.collections import create_collection
from app.ingestion.compact import FEWEST_CHANGES, run_compact, trim
from app.settings import Settings


def test_a_log_that_is_longer_than_the_collection_is_trimmed_and_followers_that_are_behind_build_anew(
    tmp_path: Path,
) -> None:
    services = build_services(Settings(data=tmp_path, embedder="hashed"))
    collection = create_collection(services.ingestion, "c", title=None, description=None, settings={})
    with services.opened.get(collection.id) as opened:
        with opened.store._database.writing() as connection:
            lines = FEWEST_CHANGES + 500
            connection.exec_driver_sql(
                f"INSERT INTO changes (chunk_key, operation) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                f"SELECT i + 1 FROM n WHERE i < {lines}) SELECT i, 'delete' FROM n"
            )
        opened.store.stage_vectors("a job that nobody knows", {b"1" * 32: np.ones(4, np.float32)})
        trim(services.ingestion, opened)
        assert opened.store.revision() - opened.store.oldest_revision() == FEWEST_CHANGES
        assert opened.store.upkeep.staging_jobs() == []
        assert opened.catch_up() == lines
        assert opened.verify() == []
    services.close()


def test_what_can_still_be_retried_is_looked_up_for_many_jobs_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = build_services(Settings(data=tmp_path, embedder="hashed"))
    collection = create_collection(services.ingestion, "c", title=None, description=None, settings={})

    def enqueue(document_id: str | None, kind: str = "ingest") -> Job:
        return services.jobs.enqueue(
            kind, collection_id=collection.id, collection="c", document_id=document_id, payload={}
        )

    with services.opened.get(collection.id) as opened:
        for number in range(6):
            if number % 2:
                opened.store.register_document(
                    f"d{number}", title="", metadata={}, media_type="text/plain", filename=None
                )
            failed = enqueue(f"d{number}")
            assert services.jobs.claim("me") is not None
            services.jobs.finish(failed.id, "me", "failed")
        reads: list[str] = []
        monkeypatch.setattr(opened.store, "document", reads.append)
        compacting = enqueue(None, "compact")
        result = run_compact(services.ingestion, opened, compacting, Mock())
        assert result["jobs_forgotten"] == 3
        assert reads == []
    left = services.jobs.list(None, limit=10)[0]
    assert sorted(job.document_id for job in left if job.document_id) == ["d1", "d3", "d5"]
    services.close()
