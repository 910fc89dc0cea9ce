"""Another process on a store's folder, with a folder, a role and seconds; it tells each turn that it has done."""

import itertools
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from conftest import DIMENSIONS, prepare_document

from app.errors import Cancelled, StoreBusy
from app.filters import Condition, Operator
from app.settings import Settings
from app.stores.sqlite import SqliteStore


def write_and_delete(store: SqliteStore, turn: int) -> None:
    """Grow a document for three turns, then delete it."""
    if turn % 4 == 3:
        store.delete_documents(["d"])
    else:
        store.replace_document(prepare_document(store, "d", [f"turn {turn} piece {i} " for i in range(400)]))


def ingest(store: SqliteStore, turn: int) -> None:
    prepared = prepare_document(store, f"d{turn % 5}", [f"{turn} {i} " for i in range(50)], {"n": turn % 5})
    # The process that deletes may come between the registration and the write, which is then refused.
    with suppress(Cancelled):
        store.replace_document(prepared)


def delete(store: SqliteStore, turn: int) -> None:
    store.delete_documents([f"d{turn % 5}"])
    if turn % 100 == 99:
        # Others map the file that shrinks here. Those that read what was before may hold on to it.
        with suppress(StoreBusy):
            store.upkeep.compact()


def search(store: SqliteStore, turn: int) -> None:
    query = np.ones(DIMENSIONS, np.float32)
    scope = store.scope(Condition("n", Operator.GTE, turn % 5), None)
    keys = np.array([key for key, _ in store.nearest(query, 20, scope)], np.int64)
    store.similarities(query, keys)
    for chunk in store.found_chunks(keys.tolist()):
        assert chunk.text.endswith(f"{chunk.ordinal} ")


def tell(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def main() -> None:
    folder, role = Path(sys.argv[1]), globals()[sys.argv[2]]
    end = time.monotonic() + float(sys.argv[3])
    store = SqliteStore(folder, Settings())
    tell("open")
    for turn in itertools.count():
        if time.monotonic() > end:
            break
        role(store, turn)
        tell(turn)
    store.close()


if __name__ == "__main__":
    main()
