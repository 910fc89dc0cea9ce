"""Each server process has a socket of its own, on one port that nobody else has."""

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from app import server_processes
from app.catalog.process_owner import ProcessOwner, living_owners
from app.errors import Misconfigured
from app.server_processes import OwnSockets, ServerProcesses, run_server, sockets_of_processes

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel shares no connections out")

CONNECTIONS = 200
PROCESSORS = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def config(port: int, host: str = "127.0.0.1") -> uvicorn.Config:
    return uvicorn.Config("app.main:create_app", host=host, port=port, workers=2, log_config=None)


def kept_sockets(closing: ExitStack, asked: uvicorn.Config | None = None) -> list[socket.socket]:
    kept = sockets_of_processes(asked or config(0))
    assert isinstance(kept, OwnSockets)
    assert kept.claim is not None
    for each in (*kept, kept.claim):
        closing.callback(each.close)
    return kept


def test_connections_go_to_every_process_and_none_to_the_socket_that_keeps_the_port(closing: ExitStack) -> None:
    kept = kept_sockets(closing)
    address = kept[0].getsockname()
    listening = []
    for _ in range(2):
        # What is sent to another process arrives there as this.
        (made,) = pickle.loads(pickle.dumps(kept))
        closing.callback(made.close)
        assert made.getsockname() == address
        made.listen(CONNECTIONS)
        made.setblocking(False)
        listening.append(made)
    for _ in range(CONNECTIONS):
        closing.callback(socket.create_connection(address).close)
    taken = [_accepted(each, closing) for each in listening]
    assert sum(taken) == CONNECTIONS
    # Of a fair coin fewer than a quarter come once in 10^13 times.
    assert min(taken) > CONNECTIONS // 4


def _accepted(listening: socket.socket, closing: ExitStack) -> int:
    count = 0
    while True:
        try:
            connection, _ = listening.accept()
        except BlockingIOError:
            return count
        closing.callback(connection.close)
        count += 1


def test_a_port_on_which_another_server_listens_is_refused(closing: ExitStack) -> None:
    other = closing.enter_context(socket.create_server(("127.0.0.1", 0), reuse_port=True))
    with pytest.raises(Misconfigured, match="cannot listen") as refused:
        run_server(config(other.getsockname()[1]))
    assert "FOOTNOTE_PORT" in (refused.value.hint or "")


def test_a_port_of_a_server_whose_processes_do_not_listen_yet_is_refused(closing: ExitStack) -> None:
    (first,) = kept_sockets(closing)
    with pytest.raises(Misconfigured, match="cannot listen"):
        sockets_of_processes(config(first.getsockname()[1]))


def test_an_address_of_no_one_is_refused() -> None:
    with pytest.raises(Misconfigured, match="cannot listen"):
        run_server(config(0, "192.0.2.1"))


class DiesWhenAsked:
    """The parent's end of the pipe to a process that ends between the question whether it lives and the answer."""

    def __init__(self, connection: Any, pid: int) -> None:
        self._connection, self._pid = connection, pid

    def send(self, question: bytes) -> None:
        self._connection.send(question)
        os.kill(self._pid, signal.SIGKILL)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def end(supervisor: ServerProcesses) -> None:
    for each in supervisor.processes:
        each.kill()
        each.join()


@pytest.fixture
def silent(closing: ExitStack, monkeypatch: pytest.MonkeyPatch) -> ServerProcesses:
    """A supervisor of one process, which was stopped before it could answer anything."""
    # The test's own process keeps its handlers.
    monkeypatch.setattr("uvicorn.supervisors.multiprocess.SIGNALS", {})
    asked = config(0)
    asked.workers, asked.timeout_worker_healthcheck, asked.timeout_graceful_shutdown = 1, 20, 0
    supervisor = ServerProcesses(asked, kept_sockets(closing, asked))
    supervisor.init_processes()
    closing.callback(end, supervisor)
    os.kill(pid_of(supervisor), signal.SIGSTOP)
    return supervisor


def pid_of(supervisor: ServerProcesses) -> int:
    (process,) = supervisor.processes
    assert process.pid is not None
    return process.pid


def test_a_process_that_dies_when_it_is_asked_whether_it_lives_is_replaced_at_once(
    silent: ServerProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    (process,), pid = silent.processes, pid_of(silent)
    monkeypatch.setattr(process, "parent_conn", DiesWhenAsked(process.parent_conn, pid))
    begin = time.monotonic()
    silent.keep_subprocess_alive()
    assert time.monotonic() - begin < silent.config.timeout_worker_healthcheck / 2
    assert pid_of(silent) != pid


def test_a_process_that_hears_no_signal_is_killed_when_the_others_have_had_their_time(
    silent: ServerProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_processes, "WORKER_END_SECONDS", 1)
    (process,) = silent.processes
    silent.terminate_all()
    begin = time.monotonic()
    silent.join_all()
    assert time.monotonic() - begin < 10
    # Both signals wait for it.
    assert process.exitcode in (-signal.SIGKILL, -signal.SIGTERM)


TAKE = (
    "import os, sys; from pathlib import Path; from app.server_processes import keep_to_own_processors\n"
    "keep_to_own_processors(int(sys.argv[2]), Path(sys.argv[1]))\n"
    "print(sorted(os.sched_getaffinity(0)), flush=True); input()\n"
)


def taken(folder: Path, processes: int, stack: ExitStack) -> tuple["subprocess.Popen[str]", list[int]]:
    """Start a process that takes its part, and return that."""
    process = subprocess.Popen(
        [sys.executable, "-c", TAKE, str(folder), str(processes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    stack.callback(lambda: process.poll() is None and process.communicate("\n"))
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())


@pytest.mark.skipif(len(PROCESSORS) < 2, reason="there is one processor")
def test_each_process_takes_processors_that_no_other_has_and_the_next_those_of_the_dead(
    tmp_path: Path, closing: ExitStack
) -> None:
    half = len(PROCESSORS) // 2
    first, of_first = taken(tmp_path, 2, closing)
    _, of_second = taken(tmp_path, 2, closing)
    assert (len(of_first), len(of_second), set(of_first) & set(of_second)) == (half, half, set())
    # No part is left for a third.
    assert taken(tmp_path, 2, closing)[1] == PROCESSORS
    first.communicate("\n")
    assert taken(tmp_path, 2, closing)[1] == of_first


@pytest.mark.skipif(len(PROCESSORS) < 2, reason="there is one processor")
def test_a_part_is_no_owner_of_jobs_and_no_owner_takes_its_file_away(tmp_path: Path, closing: ExitStack) -> None:
    first, of_first = taken(tmp_path, 2, closing)
    assert living_owners(tmp_path) == []
    first.communicate("\n")
    # A process that is about to lock a file that another one removes would share its part with the next.
    left = sorted(tmp_path.iterdir())
    closing.callback(ProcessOwner(tmp_path).close)
    assert {*left} <= {*tmp_path.iterdir()}
    assert taken(tmp_path, 2, closing)[1] == of_first


def test_more_processes_than_processors_keep_to_none(tmp_path: Path, closing: ExitStack) -> None:
    assert taken(tmp_path, len(PROCESSORS) + 1, closing)[1] == PROCESSORS
