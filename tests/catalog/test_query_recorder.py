"""Queries are written behind the search's back: none waits, none fails, and what is lost is counted."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from app.catalog.database import Database
from app.catalog.query_log import LoggedQuery, QueryLog
from app.catalog.query_recorder import QueryRecorder
from app.errors import StorageFull
from app.telemetry import counters

SECONDS = 20


class ScriptedLog(QueryLog):
    """Keeps what it is given, waits where a test says so, and raises what a test puts into `failures`."""

    def __init__(self) -> None:
        self.written: list[Any] = []
        self.failures: list[Exception] = []
        self.began = threading.Event()
        self.free = threading.Event()
        self.free.set()

    def write(self, entries: Iterable[LoggedQuery]) -> None:
        self.began.set()
        assert self.free.wait(SECONDS)
        if self.failures:
            raise self.failures.pop(0)
        self.written += entries


@pytest.fixture
def scripted() -> ScriptedLog:
    return ScriptedLog()


@pytest.fixture
def recorder_of(scripted: ScriptedLog) -> Iterator[Callable[..., QueryRecorder]]:
    """Make a recorder, which writes only when it is told to unless a test gives its pause."""
    made: list[QueryRecorder] = []

    def make(**given: Any) -> QueryRecorder:
        made.append(QueryRecorder(scripted, **{"pause_seconds": 600.0, **given}))
        return made[-1]

    yield make
    scripted.free.set()
    for recorder in made:
        recorder.close()


def entry(name: str) -> Any:
    """An entry that this room's parts pass on without a look."""
    return name


def lost() -> int:
    return counters.snapshot().get("queries_not_logged", 0)


def test_what_is_added_is_written_by_itself(scripted: ScriptedLog, recorder_of: Callable[..., QueryRecorder]) -> None:
    recorder_of(pause_seconds=0.01).add(entry("a"))
    assert scripted.began.wait(SECONDS)


def test_closing_writes_what_waits_and_ends_the_thread(
    scripted: ScriptedLog, recorder_of: Callable[..., QueryRecorder]
) -> None:
    recorder, others = recorder_of(), set(threading.enumerate())
    recorder.add(entry("a"))
    (thread,) = (each for each in set(threading.enumerate()) - others if each.name == "footnote-query-log")
    recorder.close()
    assert scripted.written == ["a"]
    assert not thread.is_alive()
    before = lost()
    recorder.add(entry("b"))
    recorder.flush()
    assert (scripted.written, lost() - before) == (["a"], 1)


def test_nobody_waits_while_the_catalog_is_written(
    scripted: ScriptedLog, recorder_of: Callable[..., QueryRecorder]
) -> None:
    recorder = recorder_of()
    recorder.add(entry("a"))
    scripted.free.clear()
    writing = threading.Thread(target=recorder.flush)
    writing.start()
    assert scripted.began.wait(SECONDS)
    recorder.add(entry("b"))
    scripted.free.set()
    writing.join()
    recorder.flush()
    assert scripted.written == ["a", "b"]


def test_more_than_may_wait_is_counted_and_told(
    scripted: ScriptedLog, recorder_of: Callable[..., QueryRecorder], caplog: pytest.LogCaptureFixture
) -> None:
    recorder, before = recorder_of(most_waiting=2), lost()
    for name in "abcde":
        recorder.add(entry(name))
    recorder.flush()
    assert (scripted.written, lost() - before) == (["a", "b"], 3)
    assert "missing" in caplog.text


def test_entries_wait_for_a_catalog_that_cannot_be_written_which_is_told_once(
    scripted: ScriptedLog, recorder_of: Callable[..., QueryRecorder], caplog: pytest.LogCaptureFixture
) -> None:
    recorder, before = recorder_of(most_waiting=3), lost()
    scripted.failures = [StorageFull("the disk is full"), StorageFull("the disk is full")]
    for name in ("ab", "cd"):
        for each in name:
            recorder.add(entry(each))
        recorder.flush()
    assert [record.levelno for record in caplog.records].count(logging.WARNING) == 2
    assert caplog.text.count("waits for the catalog") == 1
    recorder.flush()
    assert (scripted.written, lost() - before) == (["a", "b", "c"], 1)


def test_entries_that_met_a_bug_do_not_meet_it_for_ever(
    scripted: ScriptedLog, recorder_of: Callable[..., QueryRecorder], caplog: pytest.LogCaptureFixture
) -> None:
    recorder, before = recorder_of(), lost()
    scripted.failures = [ValueError("a bug")]
    recorder.add(entry("a"))
    recorder.flush()
    recorder.add(entry("b"))
    recorder.flush()
    assert (scripted.written, lost() - before) == (["b"], 1)
    assert "met a bug" in caplog.text


def test_a_recorder_without_queries_has_no_thread(database: Database) -> None:
    before = threading.active_count()
    recorder = QueryRecorder(QueryLog(database, most=5))
    assert threading.active_count() == before
    recorder.close()
