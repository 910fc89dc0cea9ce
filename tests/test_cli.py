"""The command line as a program: what it refuses, and how it says so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOOTNOTE = Path(sys.executable).with_name("footnote")
SECONDS = 60


def run(data: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FOOTNOTE_")}
    given = {"DATA": str(data), "EMBEDDER": "hashed", **settings}
    return subprocess.run(
        [str(FOOTNOTE), *words],
        env=environment | {f"FOOTNOTE_{name}": value for name, value in given.items()},
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
