from pathlib import Path

import pytest

from app.errors import DocumentOverQuota, QuotaExceeded
from app.ingestion.quotas import FolderSizes, Quotas


def test_no_quota_is_no_limit_and_asks_for_no_count() -> None:
    def count() -> int:
        raise AssertionError("counted for nothing")

    Quotas().check_original(10**12, count)
    Quotas(document_bytes=5).check_original(5, count)
    with pytest.raises(DocumentOverQuota):
        Quotas(document_bytes=5).check_original(6, count)


def test_bytes_fit_to_the_last_one() -> None:
    Quotas(bytes=10).check_original(4, lambda: 6)
    with pytest.raises(QuotaExceeded) as refused:
        Quotas(bytes=10).check_original(5, lambda: 6)
    assert refused.value.extra == {"quota": "bytes", "limit": 10, "used": 6, "needed": 5}


def test_a_folder_s_size_follows_what_comes_and_goes(tmp_path: Path) -> None:
    sizes = FolderSizes()
    assert sizes.bytes_in(tmp_path / "nowhere") == 0
    assert sizes.bytes_in(tmp_path) == 0
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "b").write_bytes(b"45")
    (tmp_path / ".draft").write_bytes(b"not yet")
    assert sizes.bytes_in(tmp_path) == 5
    (tmp_path / "a").unlink()
    (tmp_path / "c").write_bytes(b"6")
    assert sizes.bytes_in(tmp_path) == 3
