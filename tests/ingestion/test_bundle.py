"""A bundle holds files whole, in little memory, and tells each that is not the one that was packed."""

import tracemalloc
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from app.errors import DamagedArchive, StorageFull, UnusableArchive
from app.ingestion.bundle import BundleWriter, read_bundle

LARGE = 48_000_000
LITTLE = 12_000_000


@pytest.fixture
def pack(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that packs files by name."""

    def make(**files: bytes) -> Path:
        bundle = tmp_path / "bundle.zip"
        with bundle.open("wb") as target:
            writer = BundleWriter(target)
            for name, data in files.items():
                (tmp_path / name).write_bytes(data)
                writer.add(name, tmp_path / name)
            writer.finish("collection", {"more": 1})
        return bundle

    return make


def test_files_come_out_as_they_went_in(pack: Callable[..., Path], tmp_path: Path) -> None:
    files = {"a": b"", "b": bytes(range(256)) * 9000}
    with read_bundle(pack(**files), "collection") as bundle:
        assert bundle.manifest.content == {"more": 1}
        for name, data in files.items():
            bundle.extract(name, tmp_path / f"{name}-out")
            assert (tmp_path / f"{name}-out").read_bytes() == data
            assert (tmp_path / f"{name}-out").stat().st_mode & 0o777 == 0o600


def test_a_large_file_passes_through_little_memory(pack: Callable[..., Path], tmp_path: Path) -> None:
    data = bytes(LARGE)
    tracemalloc.start()
    try:
        bundle_file = pack(large=data)
        with read_bundle(bundle_file, "collection") as bundle:
            bundle.extract("large", tmp_path / "out")
        assert tracemalloc.get_traced_memory()[1] < LITTLE
    finally:
        tracemalloc.stop()
    assert (tmp_path / "out").stat().st_size == LARGE


def test_a_file_that_is_gone_is_left_out(pack: Callable[..., Path], tmp_path: Path) -> None:
    target = BytesIO()
    writer = BundleWriter(target)
    with pytest.raises(FileNotFoundError):
        writer.add("gone", tmp_path / "gone")
    writer.finish("collection", {})
    (tmp_path / "bundle.zip").write_bytes(target.getvalue())
    with read_bundle(tmp_path / "bundle.zip", "collection") as bundle:
        assert bundle.manifest.files == {}


def test_nothing_that_is_there_is_overwritten(pack: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    with read_bundle(pack(a=b"x"), "collection") as bundle, pytest.raises(FileExistsError):
        bundle.extract("a", tmp_path / "there")


def test_what_unpacks_to_more_than_is_allowed_or_fits_is_refused(
    pack: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = pack(a=bytes(100_000))
    with pytest.raises(UnusableArchive), read_bundle(packed, "collection", most_bytes=100_000):
        pass
    monkeypatch.setattr("app.ingestion.bundle.shutil.disk_usage", lambda _: type("Usage", (), {"free": 99_999}))
    with read_bundle(packed, "collection") as bundle, pytest.raises(StorageFull):
        bundle.require_room(tmp_path)


def test_a_name_that_stands_twice_is_refused(pack: Callable[..., Path]) -> None:
    packed = pack(a=b"x")
    with zipfile.ZipFile(packed, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("a", b"y")
    with pytest.raises((UnusableArchive, DamagedArchive)), read_bundle(packed, "collection"):
        pass
