"""Serve in one process, or in several among which the kernel shares the connections out."""

import fcntl
import logging
import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from app.errors import Misconfigured

NOT_STARTED = 3

WORKER_END_SECONDS = 30
"""How long a server process may take beyond its last requests: its worker comes to a safe point meanwhile."""

log = logging.getLogger(__name__)


def run_server(config: uvicorn.Config) -> None:
    """Serve until a signal ends it; raises `Misconfigured` for an address that cannot be listened on."""
    with suppress(KeyboardInterrupt):
        if config.workers > 1:
            ServerProcesses(config, sockets_of_processes(config)).run()
            return
        server = uvicorn.Server(config)
        server.run()
        if not server.started:
            raise SystemExit(NOT_STARTED)


class ServerProcesses(Multiprocess):
    """Start the server processes, and others in place of those that die or are silent for too long."""

    def keep_subprocess_alive(self) -> None:
        """Ask each process whether it lives, and replace it if not."""
        for process in self.processes:
            # While its end is open here too, one that dies before it answers is waited for like one that is silent:
            # meanwhile nothing is replaced, and no signal is heeded.
            process.child_conn.close()
        super().keep_subprocess_alive()

    def join_all(self) -> None:
        """Wait for the processes, which were told to end; one that does not end in time is killed."""
        end = time.monotonic() + (self.config.timeout_graceful_shutdown or 0) + WORKER_END_SECONDS
        for process in self.processes:
            process.process.join(max(0.0, end - time.monotonic()))
            if process.process.is_alive():
                log.warning("a server process did not end in time and is killed", extra={"pid": process.pid})
                process.kill()
            process.join()


class OwnSockets(list[socket.socket]):
    """The sockets of one server process: where this is unpickled, others are bound to the same address.

    Of one socket that all listen on, the process that wakes first takes every connection that waits. What is held here
    only keeps the port: a socket that does not listen gets no connections. `claim` keeps it from another server of ours
    that starts before the processes of this one listen.
    """

    claim: socket.socket | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what binds the sockets of another process."""
        return _bound, (self[0].family, self[0].getsockname())


def sockets_of_processes(config: uvicorn.Config) -> list[socket.socket]:
    """Return what each process is given to listen on; one socket for all where the kernel shares nothing out.

    Raises `Misconfigured` for an address that is in use or none of this machine's.
    """
    if not sys.platform.startswith("linux"):
        return [config.bind_socket()]
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        # Without the option that the processes need, so that a port on which another server listens is refused.
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((config.host, config.port))
            address = probe.getsockname()
        claim = _claimed(f"\0footnote {address[0]} {address[1]}")
        sockets = _bound(family, address)
        sockets.claim = claim
    except OSError as error:
        raise Misconfigured(
            f"cannot listen on {config.host} port {config.port}: {error.strerror or error}",
            hint="set FOOTNOTE_HOST and FOOTNOTE_PORT, or --host and --port",
        ) from error
    log.info("listening", extra={"address": address[0], "port": address[1], "processes": config.workers})
    return sockets


def keep_to_own_processors(processes: int, folder: Path) -> None:
    """Keep this thread and those that it begins to a part of the processors that no other server process has.

    The interpreter's lock changes hands some forty times in a search. Between threads of one processor that is fast;
    where a processor must be woken for it, a sixth of a busy machine's time went by. `folder` is where the processes
    tell each other which part is taken: a lock that ends with its process. Without enough processors nothing is done.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    present = sorted(os.sched_getaffinity(0))
    each = len(present) // processes
    for number in range(processes if each else 0):
        # Not named as the files of owners of jobs are, which are counted, and removed while nobody holds them.
        descriptor = os.open(folder / f"processors-{number}", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        try:
            os.sched_setaffinity(0, present[number * each : (number + 1) * each])
        except OSError as error:
            # It only saves time, and a container may forbid it.
            log.warning("this process keeps to no processors of its own", extra={"why": str(error)})
        return


def _claimed(name: str) -> socket.socket:
    """Return what holds the name, which no file stands for, until this process ends; raise `OSError` where it is held.

    Two sockets that share connections out may be bound by any two processes of one user, so the port does not tell.
    """
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(name)
    except OSError:
        claim.close()
        raise
    return claim


def _bound(family: int, address: tuple[Any, ...]) -> OwnSockets:
    made = socket.socket(family)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(address)
    return OwnSockets([made])
