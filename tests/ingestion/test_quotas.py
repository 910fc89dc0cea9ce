import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.errors import DocumentOverQuota, QuotaExceeded
from app.ingestion.quotas import FolderSizes, Quotas


def test_no_quota_is_no_limit_and_asks_for_no_count() -> None:
    def count(_size: int, _limit: int) -> int:
        raise AssertionError("counted for nothing")

    Quotas().check_original(10**12, count)
    Quotas(document_bytes=5).check_original(5, count)
    with pytest.raises(DocumentOverQuota):
        Quotas(document_bytes=5).check_original(6, count)


def test_bytes_fit_to_the_last_one() -> None:
    Quotas(bytes=10).check_original(4, lambda _size, _limit: 6)
    with pytest.raises(QuotaExceeded) as refused:
        Quotas(bytes=10).check_original(5, lambda _size, _limit: 6)
    assert refused.value.extra == {"quota": "bytes", "limit": 10, "used": 6, "needed": 5}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_folder_s_size_follows_what_comes_and_goes(tmp_path: Path) -> None:
    clock = Clock()
    sizes = FolderSizes(clock)
    assert sizes.use(tmp_path / "nowhere", 1, 100) == 0
    assert sizes.use(tmp_path, 0, 100) == 0
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "b").write_bytes(b"45")
    (tmp_path / ".draft").write_bytes(b"not yet")
    clock.now += 2
    assert sizes.use(tmp_path, 0, 100) == 5
    (tmp_path / "a").unlink()
    (tmp_path / "c").write_bytes(b"6")
    clock.now += 2
    assert sizes.use(tmp_path, 0, 100) == 3


def test_what_is_let_in_counts_before_the_folder_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    scandir = os.scandir
    monkeypatch.setattr("os.scandir", lambda folder: (looks.append(folder), scandir(folder))[1])
    sizes = FolderSizes(Clock())
    for number in range(10):
        assert sizes.use(tmp_path, 4, 100) == number * 4
        (tmp_path / str(number)).write_bytes(b"1234")
    assert len(looks) == 1


def test_a_folder_that_may_be_full_is_looked_at_at_once(tmp_path: Path) -> None:
    sizes = FolderSizes(Clock())
    assert sizes.use(tmp_path, 6, 10) == 0
    # It never came, or came as one that was there: what is refused is what is really too much.
    assert sizes.use(tmp_path, 6, 10) == 0
    (tmp_path / "a").write_bytes(b"123456")
    assert sizes.use(tmp_path, 6, 10) == 6
    # What is refused is not let in.
    assert sizes.use(tmp_path, 4, 10) == 6


def test_one_folder_that_is_slow_to_look_through_keeps_no_other_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, entered, release = tmp_path / "slow", threading.Event(), threading.Event()
    scandir = os.scandir

    def look(folder: Path) -> Any:
        if folder == slow:
            entered.set()
            assert release.wait(10)
        return scandir(folder)

    monkeypatch.setattr("os.scandir", look)
    sizes = FolderSizes()
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(sizes.use, slow, 1, 10)
        assert entered.wait(10)
        try:
            assert pool.submit(sizes.use, tmp_path, 1, 10).result(10) == 0
        finally:
            release.set()
        assert waiting.result(10) == 0
