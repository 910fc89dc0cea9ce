"""The benchmarks are programs that import each other by plain names; here they are found as they find each other."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"


@pytest.fixture(autouse=True)
def benchmarks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture
def real_vectors() -> None:
    """Skip where the data that collections are grown from is absent."""
    if not (SHARED / "e5_vectors.npz").is_file():
        pytest.skip("the vectors and texts beside the project are absent")
