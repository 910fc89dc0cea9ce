"""Searching and asking on the command line, with the options that change how hits are found."""

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from app.cli_search import Preset, Reranking
from app.inference.reranker_registry import RERANKERS
from app.retrieval.presets import PRESETS

FOOTNOTE = Path(sys.executable).with_name("footnote")
SECONDS = 60


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli-search")
    (folder / "leave.md").write_text("# Leave\n\nEach parent may take 320 working days of leave.\n")
    (folder / "pay.md").write_text("# Pay\n\nInvoices are paid within thirty days of their arrival.\n")
    ended = run(folder / "data", "ingest", str(folder / "leave.md"), str(folder / "pay.md"), "-c", "c")
    assert ended.returncode == 0, ended.stderr
    return folder / "data"


def run(data: Path, *words: str) -> subprocess.CompletedProcess[str]:
    outer = {name: value for name, value in os.environ.items() if not name.startswith("FOOTNOTE_")}
    settings = {"FOOTNOTE_DATA": str(data), "FOOTNOTE_EMBEDDER": "hashed"}
    return subprocess.run(
        [str(FOOTNOTE), *words], env=outer | settings, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def test_every_preset_and_reranker_can_be_named() -> None:
    assert list(get_args(Preset)) == list(PRESETS)
    assert list(get_args(Reranking)) == list(RERANKERS)


def test_a_search_is_reranked_and_explained_where_that_is_asked(data: Path) -> None:
    told = run(data, "search", "working days of leave", "-c", "c", "--rerank", "lexical", "--explain")
    assert told.returncode == 0, told.stderr
    *_, stages = told.stdout.partition("scope")
    names = [line.partition(":")[0] for line in stages.splitlines() if line and not line.startswith(" ")]
    assert {"keyword", "dense", "fuse", "rerank"} <= set(names)
    assert "leave.md" in stages
    assert '"lexical"' in stages
    assert "scope" not in run(data, "search", "working days of leave", "-c", "c").stdout


def test_a_preset_names_what_it_misses(data: Path) -> None:
    searched = run(data, "search", "working days of leave", "-c", "c", "--preset", "power")
    assert "320 working days" in " ".join(searched.stdout.split())
    assert "no_parent_vectors" in searched.stderr
    asked = run(data, "ask", "How many working days of leave may each parent take?", "-c", "c", "--preset", "power")
    assert "320 working days" in asked.stdout
    assert "no_parent_vectors" in asked.stderr


def test_what_cannot_be_done_ends_with_what_to_set(data: Path) -> None:
    ended = run(data, "search", "leave", "-c", "c", "--rerank", "http")
    assert ended.returncode == 2
    assert "FOOTNOTE_RERANK_BASE_URL" in ended.stderr
    assert run(data, "search", "leave", "-c", "c", "--preset", "best").returncode == 2
