import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.message import EmailMessage
from pathlib import Path

import pytest

from app.errors import (
    Cancelled,
    DamagedDocument,
    DocumentLimitExceeded,
    NoExtractableText,
    PasswordRequired,
    Unavailable,
)
from app.ingestion.isolation import ParserPool
from app.ingestion.port import PrepareRequest

BOUND_SECONDS = 30.0


@pytest.fixture
def pool() -> Iterator[ParserPool]:
    made = ParserPool(1)
    yield made
    made.close()


@pytest.fixture
def short(tmp_path: Path, request_for: Callable[..., PrepareRequest]) -> PrepareRequest:
    path = tmp_path / "short.txt"
    path.write_text("A short text.")
    return request_for(path)


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A file whose reading does not end: a pipe that nobody writes to."""
    path = tmp_path / "endless.txt"
    os.mkfifo(path)
    return path


def child_of(pool: ParserPool) -> subprocess.Popen[bytes]:
    [child] = [*pool._idle, *pool._busy]
    return child.process


def wait_for_child(pool: ParserPool) -> subprocess.Popen[bytes]:
    """Wait until a document is in work."""
    deadline = threading.Event()
    for _ in range(int(BOUND_SECONDS * 100)):
        if pool._busy:
            return child_of(pool)
        deadline.wait(0.01)
    raise AssertionError("no child was started")


def test_a_document_comes_back_as_the_child_read_it(pool, short) -> None:
    prepared = pool.prepare(short)

    assert prepared.extraction.text == "A short text."
    assert prepared.chunks[0].text == "A short text."


def test_the_child_stays_warm_for_the_next_document(pool, short) -> None:
    pool.prepare(short)
    first = child_of(pool).pid
    pool.prepare(short)

    assert child_of(pool).pid == first


def test_an_idle_pool_holds_no_child(short) -> None:
    pool = ParserPool(1, idle_seconds=0.05)
    pool.prepare(short)
    process = child_of(pool) if pool._idle else None

    if process:
        process.wait(BOUND_SECONDS)
    if pool._reaper:
        pool._reaper.join(BOUND_SECONDS)
    assert pool._idle == []


def test_errors_of_a_loader_come_back_as_they_are_and_the_child_stays(pool, request_for, make_pdf, tmp_path) -> None:
    path = tmp_path / "scan.pdf"
    path.write_bytes(make_pdf([None, None]))

    with pytest.raises(NoExtractableText) as caught:
        pool.prepare(request_for(path))
    assert len(caught.value.extra["report"]["by_page"]) == 2
    assert child_of(pool).poll() is None


def test_a_document_above_the_time_limit_is_given_up_and_the_next_one_is_read(
    pool, request_for, endless, short
) -> None:
    with pytest.raises(DocumentLimitExceeded) as caught:
        pool.prepare(request_for(endless, limits={"parse_timeout_seconds": 1.0}))

    assert "FOOTNOTE_PARSE_TIMEOUT_SECONDS" in (caught.value.hint or "")
    assert pool.prepare(short).extraction.text == "A short text."


def test_a_document_above_the_memory_limit_is_given_up_and_the_next_one_is_read(
    pool, request_for, tmp_path, short
) -> None:
    path = tmp_path / "large.txt"
    path.write_bytes("客户 ".encode() * 20_000_000)

    with pytest.raises(DocumentLimitExceeded) as caught:
        pool.prepare(request_for(path, limits={"parse_memory_bytes": 100_000_000}))

    assert "FOOTNOTE_PARSE_MEMORY_BYTES" in (caught.value.hint or "")
    assert pool.prepare(short).extraction.text == "A short text."


def test_a_parser_that_crashes_costs_only_its_document(pool, request_for, endless, short) -> None:
    with ThreadPoolExecutor(1) as threads:
        crashing = threads.submit(pool.prepare, request_for(endless))
        wait_for_child(pool).send_signal(signal.SIGSEGV)

        with pytest.raises(DamagedDocument):
            crashing.result(BOUND_SECONDS)
    assert pool.prepare(short).extraction.text == "A short text."


def test_a_child_that_the_system_killed_is_told_as_want_of_memory(pool, request_for, endless) -> None:
    with ThreadPoolExecutor(1) as threads:
        killed = threads.submit(pool.prepare, request_for(endless))
        wait_for_child(pool).kill()

        with pytest.raises(DocumentLimitExceeded, match="memory"):
            killed.result(BOUND_SECONDS)


def test_closing_ends_the_children_and_their_callers(request_for, endless, short) -> None:
    pool = ParserPool(1)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(pool.prepare, request_for(endless))
        process = wait_for_child(pool)
        pool.close()

        with pytest.raises(Unavailable):
            waiting.result(BOUND_SECONDS)
    assert process.poll() is not None
    with pytest.raises(Unavailable):
        pool.prepare(short)


def test_callers_wait_while_all_children_are_busy(request_for, short) -> None:
    pool = ParserPool(2)
    with ThreadPoolExecutor(8) as threads:
        texts = [prepared.extraction.text for prepared in threads.map(pool.prepare, [short] * 16)]

    assert texts == ["A short text."] * 16
    assert len(pool._idle) <= 2
    pool.close()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_child_has_no_settings_and_no_sockets(pool, short, monkeypatch) -> None:
    import socket

    monkeypatch.setenv("FOOTNOTE_ADMIN_KEY", "a-very-secret-key")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.set_inheritable(True)
        pool.prepare(short)
        process = Path(f"/proc/{child_of(pool).pid}")

        assert b"FOOTNOTE_" not in (process / "environ").read_bytes()
        assert not any(str(link.readlink()).startswith("socket:") for link in (process / "fd").iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("busy", [False, True])
def test_the_child_dies_with_the_process_that_started_it(tmp_path, endless, busy) -> None:
    (tmp_path / "short.txt").write_text("A short text.")
    program = textwrap.dedent(
        f"""
        import os, threading
        from pathlib import Path
        from app.domain import ChunkingOptions
        from app.inference.port import TokenCounterSpec
        from app.ingestion.isolation import ParserPool
        from app.ingestion.port import LoadLimits, PrepareRequest

        def request(name):
            limits = LoadLimits(10, 10**6, 100, 60, 10**9)
            counter = TokenCounterSpec("estimate")
            path = Path({str(tmp_path)!r}) / name
            return PrepareRequest(path, None, name, None, None, ChunkingOptions(), counter, 512, limits)

        pool = ParserPool(1)
        pool.prepare(request("short.txt"))
        [child] = pool._idle
        if {busy}:
            threading.Thread(target=pool.prepare, args=(request("endless.txt"),), daemon=True).start()
            while not pool._busy:
                pass
        print(child.process.pid, flush=True)
        input()
        """
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    descriptor = os.pidfd_open(child)
    parent.kill()
    parent.communicate()

    import select

    ended, _, _ = select.select([descriptor], [], [], BOUND_SECONDS)
    os.close(descriptor)
    assert ended


def test_encrypted_and_opened_with_its_password(pool, request_for, tmp_path) -> None:
    path = Path(__file__).parents[1] / "files" / "pdf" / "password.pdf"

    with pytest.raises(PasswordRequired):
        pool.prepare(request_for(path))
    assert "File with password" in pool.prepare(request_for(path, password="password")).extraction.text


def test_pages_to_be_recognised_extend_the_time_limit(pool, request_for) -> None:
    pytest.importorskip("rapidocr", reason="the extra `ocr` is not installed")
    files = Path(__file__).parents[1] / "files" / "pdf"
    pool.prepare(request_for(files / "google-doc-document.pdf"))
    # The models alone take longer to load; the child is warm, so that it says in time how many pages there are.
    limits = {"parse_timeout_seconds": 2.0, "ocr_page_seconds": 100.0}

    prepared = pool.prepare(request_for(files / "ocr_test.pdf", limits=limits))

    assert prepared.extraction.report()["ocr"]["pages"][0]["page"] == 1
    assert prepared.timings_ms["load"] > 2000


def test_attachments_arrive_as_files(pool, request_for, tmp_path: Path) -> None:
    mail = tmp_path / "a.eml"
    mail.write_bytes(_mail())
    received = tmp_path / "received"
    received.mkdir()

    prepared = pool.prepare(request_for(mail, attachments_folder=received))

    assert [(each.name, each.media_type, each.path.read_bytes()) for each in prepared.attachments] == [
        ("a.csv", "text/csv", b"a,b\n1,2\n")
    ]
    assert [each.path.parent for each in prepared.attachments] == [received]


def test_attachments_of_a_document_that_is_only_looked_at_are_left_out(pool, request_for, tmp_path: Path) -> None:
    mail = tmp_path / "a.eml"
    mail.write_bytes(_mail())

    assert pool.prepare(request_for(mail)).attachments == ()


def _mail() -> bytes:
    message = EmailMessage()
    message.set_content("See the table.")
    message.add_attachment(b"a,b\n1,2\n", maintype="text", subtype="csv", filename="a.csv")
    return bytes(message)


class Told:
    """A job's report that remembers what it was told, and ends the work at a stage."""

    job_id = "job"

    def __init__(self, cancels_at: str | None = None) -> None:
        self.told: list[tuple[object, ...]] = []
        self._cancels_at = cancels_at

    def stage(self, name: str, total: int | None = None, unit: str | None = None) -> None:
        self.told.append((name, total, unit))
        if name == self._cancels_at:
            raise Cancelled("the job was cancelled")

    def advance(self, done: int, total: int | None = None, unit: str | None = None) -> None:
        self.told.append((done, total, unit))


def test_a_report_hears_of_pages_and_stages_while_the_child_works(pool, make_pdf, tmp_path, request_for) -> None:
    (tmp_path / "three.pdf").write_bytes(make_pdf(["one", "two", "three"]))
    report = Told()
    pool.prepare(request_for(tmp_path / "three.pdf"), report)

    assert report.told[0] == (1, 3, "pages")
    assert report.told[-2:] == [("clean", None, None), ("chunk", None, None)]


def test_a_cancellation_amid_a_document_ends_its_child_and_spoils_no_other(pool, short) -> None:
    with pytest.raises(Cancelled):
        pool.prepare(short, Told(cancels_at="clean"))

    assert pool._idle == []
    assert pool.prepare(short, Told()).extraction.text == "A short text."


def test_who_has_waited_long_enough_for_a_parser_is_told_to_try_again(endless, request_for, short) -> None:
    hasty = ParserPool(1, patience_seconds=0.1)
    with ThreadPoolExecutor(1) as beside:
        busy = beside.submit(hasty.prepare, request_for(endless))
        wait_for_child(hasty)
        with pytest.raises(Unavailable) as told:
            hasty.prepare(short)
        assert told.value.retry_after == 0.1
        hasty.close()
        with pytest.raises(Unavailable):
            busy.result(BOUND_SECONDS)
