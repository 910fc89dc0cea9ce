"""Keep queries in memory and write them by and by, so that no search waits for the log or fails with it."""

import logging
import threading

from app.catalog.query_log import LoggedQuery, QueryLog
from app.errors import FootnoteError
from app.telemetry import counters

log = logging.getLogger(__name__)

MOST_WAITING = 5000
"""Entries that may wait to be written, a few kilobytes each; what comes above is counted and left out."""

PAUSE_SECONDS = 1.0
"""How late an entry may be seen by another process."""


class QueryRecorder:
    """One thread writes what the process's searches add; it begins with the first of them."""

    def __init__(
        self, query_log: QueryLog, *, most_waiting: int = MOST_WAITING, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        self._log = query_log
        self._most_waiting = most_waiting
        self._pause_seconds = pause_seconds
        self._guard = threading.Lock()
        self._writing = threading.Lock()
        self._waiting: list[LoggedQuery] = []
        self._lost = 0
        self._is_failing = False
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, entry: LoggedQuery) -> None:
        """Have an entry written soon; where too many wait, or after `close`, it is left out and counted."""
        with self._guard:
            if len(self._waiting) >= self._most_waiting or self._closing.is_set():
                self._lost += 1
                return
            self._waiting.append(entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="footnote-query-log", daemon=True)
                self._thread.start()

    def flush(self) -> None:
        """Write what waits; while the catalog cannot be written it goes on waiting, and nothing is raised."""
        with self._writing:
            with self._guard:
                entries, self._waiting = self._waiting, []
                lost, self._lost = self._lost, 0
            lost += self._unwritten(entries)
        if lost:
            counters.add("queries_not_logged", lost)
            log.warning("queries are missing in the log of their collections", extra={"queries": lost})

    def close(self) -> None:
        """Write what waits and end the thread."""
        with self._guard:
            self._closing.set()
        if self._thread is not None:
            self._thread.join()
        self.flush()

    def _run(self) -> None:
        while not self._closing.wait(self._pause_seconds):
            self.flush()

    def _unwritten(self, entries: list[LoggedQuery]) -> int:
        """Write entries and return how many are lost; those of a catalog that will answer again wait on."""
        if not entries:
            return 0
        try:
            self._log.write(entries)
        except FootnoteError as error:
            if not self._is_failing:
                log.warning("the query log waits for the catalog: %s", error.detail, extra={"code": error.code})
            self._is_failing = True
            return self._keep(entries)
        except Exception:
            # The same entries could meet the same bug for ever.
            log.exception("the query log met a bug")
            return len(entries)
        self._is_failing = False
        counters.add("queries_logged", len(entries))
        return 0

    def _keep(self, entries: list[LoggedQuery]) -> int:
        with self._guard:
            if self._closing.is_set():
                return len(entries)
            both = entries + self._waiting
            self._waiting = both[: self._most_waiting]
            return len(both) - len(self._waiting)
