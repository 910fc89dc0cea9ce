"""Several real processes on one data folder, and processes that are killed."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.indexes.pool import OpenCollections
from app.stores.port import Scope

SECONDS = 4.0
SCRIPT = Path(__file__).with_name("one_process.py")
EVERYTHING = Scope(None, None)


def start(role: str, data: Path, seconds: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), role, str(data), str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_processes_that_ingest_delete_and_search_never_fail(
    open_pool: Callable[..., OpenCollections], tmp_path: Path
) -> None:
    open_pool().create("c")
    roles = ["ingest", "ingest_lazily", "delete", "search", "search"]
    processes = [start(role, tmp_path, SECONDS) for role in roles]
    for process in processes:
        output, errors = process.communicate(timeout=SECONDS + 60)
        assert process.returncode == 0, errors
        assert int(output.split()[-1]) > 0
        assert errors == ""
    with open_pool().get("c") as opened:
        opened.fresh()
        assert opened.verify() == []
        followed = [index.keys().tolist() for index in opened.index.followers()]
        words = opened.index.keyword.search(["word"], 1000, EVERYTHING).keys.tolist()
        opened.rebuild()
        assert [index.keys().tolist() for index in opened.index.followers()] == followed
        assert sorted(opened.index.keyword.search(["word"], 1000, EVERYTHING).keys.tolist()) == sorted(words)


@pytest.mark.slow
def test_processes_killed_at_any_moment_leave_a_clean_index(
    open_pool: Callable[..., OpenCollections], tmp_path: Path
) -> None:
    pool = open_pool()
    pool.create("c")
    for _ in range(3):
        processes = [start(role, tmp_path, 60) for role in ("ingest", "delete", "search")]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "working\n"
        # Each has been at work for as long as the others took to start, which differs from round to round.
        for process in processes:
            process.kill()
        for process in processes:
            process.communicate()
        with pool.get("c") as opened:
            opened.fresh()
            assert {index.revision() for index in opened.index.followers()} == {opened.store.revision()}
            assert opened.verify() == []
        with open_pool().get("c") as reopened:
            assert reopened.verify() == []
