"""The command line as a program: what it refuses, and how it says so."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pypdf import PdfReader, PdfWriter

FOOTNOTE = Path(sys.executable).with_name("footnote")
SECONDS = 60
FILES = Path(__file__).parent / "files"


def environment(data: Path, **settings: str) -> dict[str, str]:
    outer = {name: value for name, value in os.environ.items() if not name.startswith("FOOTNOTE_")}
    given = {"DATA": str(data), "EMBEDDER": "hashed", **settings}
    return outer | {f"FOOTNOTE_{name}": value for name, value in given.items()}


def run(
    data: Path, *words: str, given: str = "", document_password: str | None = None, **settings: str
) -> subprocess.CompletedProcess[str]:
    password = {} if document_password is None else {"DOCUMENT_PASSWORD": document_password}
    return subprocess.run(
        [str(FOOTNOTE), *words],
        env=environment(data, **settings) | password,
        input=given,
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
    answer, gap, citation = run(ingested, "ask", "未休的年假可以顺延到次年三月吗？", "-c", "c").stdout.splitlines()
    assert answer == SENTENCE.removesuffix("。") + "[1]。"
    assert gap == ""
    assert citation == f"[1] leave.txt: “{SENTENCE}”"


def test_places_are_named_in_the_words_of_their_format(tmp_path: Path) -> None:
    rows = "name,days\n" + "".join(f"team{number},{number}\n" for number in range(1, 5))
    (tmp_path / "leave.csv").write_text(rows)
    slides = FILES / "pptx" / "powerpoint_sample.pptx"
    folder = tmp_path / "data"
    assert run(folder, "ingest", str(tmp_path / "leave.csv"), str(slides), "-c", "c").returncode == 0

    asked = run(folder, "ask", "How many days has team3?", "-c", "c").stdout
    assert "leave.csv, rows 2-5: “name: team3" in asked
    shown = run(folder, "search", "slide", "-c", "c").stdout
    assert "slide 1" in shown
    assert "page 1" not in shown


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    writer = PdfWriter(clone_from=PdfReader(FILES / "pdf" / "google-doc-document.pdf"))
    writer.encrypt("open sesame", algorithm="AES-256")
    writer.write(tmp_path / "locked.pdf")
    return tmp_path / "locked.pdf"


def test_an_encrypted_file_names_the_option_that_opens_it(tmp_path: Path, locked: Path) -> None:
    failed = run(tmp_path / "data", "ingest", str(locked), "-c", "c")
    assert failed.returncode == 1
    assert "password_required" in failed.stderr
    assert "--password" in failed.stderr

    for given in ({"given": "open sesame\n"}, {"document_password": "open sesame"}):
        opened = run(
            tmp_path / "data", "ingest", str(locked), "-c", next(iter(given)).replace("_", "-"), "--password", **given
        )
        assert (opened.returncode, opened.stdout.strip()) == (0, "1 created")
        assert "sesame" not in opened.stdout + opened.stderr


def test_a_watched_folder_stays_in_step_with_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "one.txt").write_text("the first note")
    command = [str(FOOTNOTE), "ingest", str(folder), "-c", "c", "--sync", "--watch"]
    with subprocess.Popen(
        command,
        env=environment(tmp_path / "data"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # A suite in the background of a script ignores the signal, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
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
