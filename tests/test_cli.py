"""The command line as a program: what it refuses, and how it says so."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FOOTNOTE = Path(sys.executable).with_name("footnote")
SECONDS = 60


def environment(data: Path, **settings: str) -> dict[str, str]:
    outer = {name: value for name, value in os.environ.items() if not name.startswith("FOOTNOTE_")}
    given = {"DATA": str(data), "EMBEDDER": "hashed", **settings}
    return outer | {f"FOOTNOTE_{name}": value for name, value in given.items()}


def run(data: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(FOOTNOTE), *words],
        env=environment(data, **settings),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"EMBEDER": "hashed"}, "FOOTNOTE_EMBEDDER"),
        ({"PORT": "99999"}, "FOOTNOTE_PORT"),
        ({"EMBEDDER": "openai_compatible"}, "FOOTNOTE_EMBEDDING_MODEL"),
        ({"LANGUAGE_MODEL": "m", "LANGUAGE_MODEL_BASE_URL": "nowhere"}, "http://"),
        ({"DATA": "/dev/null/data"}, "/dev/null/data"),
    ],
)
def test_serving_with_a_wrong_setting_ends_at_once_with_a_sentence(
    tmp_path: Path, settings: dict[str, str], said: str
) -> None:
    ended = run(tmp_path / "data", "serve", "--port", "0", "--workers", "2", **settings)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_serving_a_damaged_catalog_ends_at_once_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_bytes(b"no database" * 1000)
    ended = run(tmp_path, "serve", "--port", "0")
    assert ended.returncode == 2
    assert "catalog.db is not sound" in ended.stderr
    assert "Traceback" not in ended.stderr


SENTENCE = "未休的年假可以顺延到次年三月，但须在前一年的十二月三十一日以前向所在部门提出书面申请并得到批准。"


@pytest.fixture
def ingested(tmp_path: Path) -> Path:
    (tmp_path / "leave.txt").write_text(SENTENCE, encoding="utf-8")
    assert run(tmp_path / "data", "ingest", str(tmp_path / "leave.txt"), "-c", "c").returncode == 0
    return tmp_path / "data"


def test_a_passage_without_spaces_is_shown_whole(ingested: Path) -> None:
    shown = run(ingested, "search", "年假", "-c", "c").stdout
    rows = [line.split("│")[-2].strip() for line in shown.splitlines() if line.startswith("│")]
    assert "".join(rows) == SENTENCE


def test_an_answer_that_is_piped_is_not_cut_into_lines(ingested: Path) -> None:
    answer, citation = run(ingested, "ask", "未休的年假可以顺延到次年三月吗？", "-c", "c").stdout.splitlines()
    assert answer == SENTENCE.removesuffix("。") + "[1]。"
    assert citation.endswith(f"“{SENTENCE}”")


def test_a_watched_folder_stays_in_step_with_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "one.txt").write_text("the first note")
    command = [str(FOOTNOTE), "ingest", str(folder), "-c", "c", "--sync", "--watch"]
    with subprocess.Popen(
        command, env=environment(tmp_path / "data"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as watching:
        assert watching.stdout is not None
        try:
            assert watching.stdout.readline().startswith("watching")
            assert watching.stdout.readline().strip() == "1 created"
            (folder / "two.txt").write_text("the second note")
            assert watching.stdout.readline().strip() == "1 created, 1 unchanged"
            (folder / "one.txt").unlink()
            assert watching.stdout.readline().strip() == "1 deleted, 1 unchanged"
        finally:
            watching.send_signal(signal.SIGINT)
        assert watching.wait(SECONDS) == 130
