import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.shared
@pytest.mark.usefixtures("real_vectors")
def test_the_true_nearest_are_those_of_all_vectors_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import grown_collection
    from search_engines import selection
    from search_measure import Workload, truth

    monkeypatch.setattr(grown_collection, "_BATCH", 70)
    chosen = (None, selection(50, 40), selection(1, 40), selection(0.01, 40))
    nearest = truth(Workload(400, 10, 5, 10, chosen, ()))

    queries = grown_collection.GrownQueries(5)
    vectors = np.concatenate(list(grown_collection.grown_passages(400)))
    documents = np.arange(400) // 10
    for numbers, each in zip(nearest, chosen, strict=True):
        scores = queries.embed_queries(queries.texts) @ vectors.T
        if each is not None:
            scores[:, ~each.admits(documents)] = -np.inf
        assert np.array_equal(numbers, np.argsort(-scores, axis=1)[:, :10])


@pytest.mark.shared
@pytest.mark.usefixtures("real_vectors")
def test_documents_hold_the_collections_vectors_in_their_order() -> None:
    from grown_collection import grown_documents, grown_passages

    documents = list(grown_documents(205, 10))
    assert [len(document.texts) for document in documents] == [10] * 20 + [5]
    assert [document.number for document in documents] == list(range(21))
    vectors = np.concatenate([document.vectors for document in documents])
    assert np.array_equal(vectors, np.concatenate(list(grown_passages(205))))


def test_recall_counts_the_true_ones_and_exact_needs_their_order() -> None:
    from search_measure import compare

    nearest = np.array([[4, 7, -1], [4, 7, 9]])
    assert compare([[4, 7], [4, 7, 9]], nearest) == (1.0, 1.0)
    assert compare([[7, 4], [4, 7, 8]], nearest) == (pytest.approx(5 / 6), 0.0)


def test_a_filter_below_one_percent_names_as_many_documents() -> None:
    from search_engines import selection

    documents = np.arange(100_000)
    assert selection(0.01, 100_000).admits(documents).sum() == 10
    assert selection(1, 100_000).admits(documents).sum() == 1_000
    assert selection(50, 100_000).admits(documents).sum() == 50_000
    assert selection(0.01, 30).admits(np.arange(30)).sum() == 1


def test_a_rival_that_is_absent_is_named_with_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import search as program

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "chromadb" else object())
    monkeypatch.setattr(sys, "argv", ["search.py", "--rivals", "lancedb", "chroma"])
    with pytest.raises(SystemExit):
        program.main()
    said = capsys.readouterr().err
    assert "chromadb not installed" in said
    assert "footnote[bench]" in said


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.usefixtures("real_vectors")
def test_a_small_collection_is_measured_in_process_and_over_http(tmp_path: Path) -> None:
    options = "--chunks 300 --queries 20 --filter 50 1 --clients 2 --http --http-clients 2 --ingest grown"
    command = [sys.executable, "benchmarks/search.py", *options.split(), "--ingest-seconds", "2"]
    ran = subprocess.run(
        [*command, "--folder", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    dense = re.findall(r"^(?:none|50 %|1 %) +dense .* (\S+) +(\S+)$", ran.stdout, re.MULTILINE)
    assert [recall for recall, _ in dense] == ["1.0000"] * 3
    for told in ("built in", "peak", "dense index", "8-bit vectors", "over HTTP", "beside documents coming in"):
        assert told in ran.stdout
    assert [entry.name for entry in tmp_path.iterdir()] == ["300x10"]
