import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.domain import Document
from app.settings import Settings
from app.stores.prepared import PreparedDocument
from app.stores.sqlite import SqliteStore

Put = Callable[..., Document]


def start(folder: Path, role: str, seconds: float) -> subprocess.Popen[str]:
    script = Path(__file__).with_name("store_process.py")
    return subprocess.Popen(
        [sys.executable, str(script), str(folder), role, str(seconds)], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("turns", [1, 4, 7])
def test_a_killed_process_loses_nothing_committed_and_leaves_nothing_half_done(tmp_path: Path, turns: int) -> None:
    with start(tmp_path, "write_and_delete", 60) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        told = [process.stdout.readline() for _ in range(turns)]
        process.send_signal(signal.SIGKILL)
        told += process.stdout.readlines()

    store = SqliteStore(tmp_path, Settings())
    document = store.document("d")
    last = int(told[-1])
    versions = {turn: 0 if turn % 4 == 3 else turn % 4 + 1 for turn in (last, last + 1)}
    found = document.version if document else 0
    assert found in versions.values()
    if found:
        assert store.text("d", 0, 5) == "turn "
        assert len(store.chunk_keys()) == 400
    assert store.verify() == []
    store.delete_documents(["d"])
    assert store.verify() == []
    store.close()


def test_processes_ingest_delete_compact_and_search_one_collection_without_an_error(tmp_path: Path) -> None:
    # On a busy machine a writer may wait for seconds before its turn.
    processes = [start(tmp_path, role, 8) for role in ("ingest", "delete", "search", "search")]
    steps = [process.communicate(timeout=60)[0].count("\n") for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    assert min(steps) > 2
    store = SqliteStore(tmp_path, Settings())
    assert store.verify() == []
    store.close()


def test_threads_read_whole_versions_while_others_write(store: SqliteStore, put: Put) -> None:
    put(store, "d", [f"0 {i} " for i in range(20)])
    done = threading.Event()

    def read() -> set[int]:
        seen = set()
        while not done.is_set():
            versions = {chunk.text.split()[0] for chunk in store.chunks("d", limit=100, after=None)}
            seen |= {len(versions), len(set(store.text("d", 0, None).split()[::2]))}
        return seen

    def write(name: str) -> None:
        for turn in range(10):
            put(store, name, [f"{turn} {i} " for i in range(20)])

    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(read) for _ in range(3)]
        writers = [pool.submit(write, name) for name in ("d", "e")]
        try:
            for writer in writers:
                writer.result()
        finally:
            done.set()
        assert [reader.result() for reader in readers] == [{1}] * 3


def test_twenty_thousand_chunks_are_deleted_within_two_seconds_while_another_document_is_written(
    store: SqliteStore, put: Put
) -> None:
    put(store, "big", [f"piece {i} " * 20 for i in range(20_000)])
    done = threading.Event()

    def write() -> int:
        turn = 0
        while not done.is_set():
            put(store, "other", [f"{turn} {i} " for i in range(100)])
            turn += 1
        return turn

    with ThreadPoolExecutor() as pool:
        writing = pool.submit(write)
        begin = time.perf_counter()
        store.delete_documents(["big"])
        seconds = time.perf_counter() - begin
        done.set()
        assert writing.result() > 0
    assert seconds < 2
    assert len(store.chunk_keys()) == 100
    assert store.verify() == []


def test_originals_are_counted(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "originals").mkdir()
    (tmp_path / "originals" / "abcd").write_bytes(b"12345")
    assert store.stats().original_bytes == 5


def test_a_write_that_fails_midway_leaves_the_version_before(
    store: SqliteStore, put: Put, prepare: Callable[..., PreparedDocument]
) -> None:
    put(store, "d", ["old "])
    broken = prepare(store, "d", ["new ", "newer "])
    broken.chunks[1] = broken.chunks[0]
    with pytest.raises(Exception, match="UNIQUE"):
        store.replace_document(broken)
    assert store.text("d", 0, None) == "old "
    assert store.verify() == []
