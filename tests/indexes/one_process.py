"""One of several processes on one data folder: `one_process.py ROLE DATA SECONDS`; run by `test_processes.py`.

Prints a line when it starts working, and at the end how often it did what it does, or a traceback and status 1.
"""

import contextlib
import itertools
import sys
import time
from collections.abc import Callable
from pathlib import Path

from conftest import make_pool, make_vector, put_document

from app.errors import Cancelled
from app.indexes.opening import OpenCollection
from app.stores.port import Scope

EVERYTHING = Scope(None, None)
NAMES = 12


def ingest(opened: OpenCollection, turn: int) -> None:
    name = turn % NAMES
    # Deleted by another process before it was written.
    with contextlib.suppress(Cancelled):
        put_document(opened.store, f"d{name}", [f"word {name} {turn} {part}" for part in range(1 + turn % 5)])
    opened.catch_up()


def ingest_lazily(opened: OpenCollection, turn: int) -> None:
    """Leave the following to whoever searches next."""
    with contextlib.suppress(Cancelled):
        put_document(opened.store, f"l{turn % NAMES}", [f"word lazy {turn}"])


def delete(opened: OpenCollection, turn: int) -> None:
    opened.store.delete_documents([f"d{turn % NAMES}", f"l{(turn + 5) % NAMES}"])
    opened.catch_up()


def search(opened: OpenCollection, turn: int) -> None:
    revision = opened.store.revision()
    opened.fresh()
    for index in opened.index.followers():
        assert index.revision() >= revision, "a search saw less than what was committed before it"
    words = opened.index.keyword.search(["word"], 50, EVERYTHING)
    near = opened.index.dense.search(make_vector(f"word {turn % NAMES} 0 0"), 50, EVERYTHING)
    for found in (words, near):
        assert len(set(found.keys.tolist())) == len(found.keys), "a chunk was found twice"
        opened.store.found_chunks(found.keys.tolist())


ROLES: dict[str, Callable[[OpenCollection, int], None]] = {
    role.__name__: role for role in (ingest, ingest_lazily, delete, search)
}


def main(role: str, data: str, seconds: str) -> None:
    pool = make_pool(Path(data))
    work = ROLES[role]
    with pool.get("c") as opened:
        sys.stdout.write("working\n")
        sys.stdout.flush()
        end = time.monotonic() + float(seconds)
        for turn in itertools.count(1):
            work(opened, turn)
            if time.monotonic() >= end:
                break
    pool.close()
    sys.stdout.write(f"{turn}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
