"""Each server process has a socket of its own, on one port that nobody else has."""

import pickle
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import uvicorn

from app.errors import Misconfigured
from app.server_processes import run_server, sockets_of_processes

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel shares no connections out")

CONNECTIONS = 200


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def config(port: int, host: str = "127.0.0.1") -> uvicorn.Config:
    return uvicorn.Config("app.main:create_app", host=host, port=port, workers=2, log_config=None)


def test_connections_go_to_every_process_and_none_to_the_socket_that_keeps_the_port(closing: ExitStack) -> None:
    kept = sockets_of_processes(config(0))
    closing.callback(kept[0].close)
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


def test_an_address_of_no_one_is_refused() -> None:
    with pytest.raises(Misconfigured, match="cannot listen"):
        run_server(config(0, "192.0.2.1"))
