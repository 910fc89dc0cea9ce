"""What only grows stays within bounds between two compactions."""

from pathlib import Path

import numpy as np

from app.bootstrap import build_services
from app.ingestion.collections import create_collection
from app.ingestion.compact import FEWEST_CHANGES, trim
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
