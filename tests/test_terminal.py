"""Progress on the command line: bars for people, lines for logs."""

import io

import pytest
from rich.console import Console

from app import terminal
from app.ingestion.folder import FileInWork
from app.terminal import IngestProgress

EMBEDDING = FileInWork("guides/[a].pdf", "job_1", "embed", 128, 420, "chunks")
BEGUN = FileInWork("b.txt", "job_2", None, 0, None, None)


def test_without_a_terminal_there_are_plain_lines_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.StringIO()
    progress = IngestProgress(Console(file=output, force_terminal=False, soft_wrap=True))
    with progress:
        progress(0, 3)
        assert output.getvalue() == "", "not more often than somebody reads"
        monkeypatch.setattr(terminal, "LINE_SECONDS", 0.0)
        progress(1, 3, [EMBEDDING, BEGUN])
        monkeypatch.setattr(terminal, "LINE_SECONDS", 100.0)
        progress(3, 3)
    assert output.getvalue().splitlines() == [
        "1 of 3 files; guides/[a].pdf: embed 128 of 420 chunks; b.txt: begun",
        "3 of 3 files",
    ]


def test_nothing_to_do_prints_nothing_without_a_terminal() -> None:
    output = io.StringIO()
    with IngestProgress(Console(file=output, force_terminal=False)):
        pass
    assert output.getvalue() == ""


def test_a_terminal_shows_a_bar_for_all_files_and_one_for_each_in_work() -> None:
    output = io.StringIO()
    progress = IngestProgress(Console(file=output, force_terminal=True, width=120))
    with progress:
        progress(1, 3, [EMBEDDING, BEGUN])
    shown = output.getvalue()
    assert "ingesting" in shown
    assert "1/3" in shown
    assert "guides/[a].pdf: embed" in shown
    assert "128/420" in shown
    assert "0/?" in shown
    with progress:
        progress(3, 3)
    last_frame = output.getvalue().rpartition("ingesting")[2]
    assert "3/3" in last_frame
    assert "guides" not in last_frame
