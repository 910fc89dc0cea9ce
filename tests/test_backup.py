"""Back up a data folder in use, and restore it elsewhere."""

import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from io import BytesIO
from pathlib import Path

import pytest

from app.backup import back_up, restore
from app.bootstrap import Services, build_services
from app.catalog.collections import Collection
from app.catalog.job import JobState
from app.catalog.principal import Role
from app.errors import Conflict, DamagedArchive, UnusableArchive
from app.ingestion.collections import create_collection, remove_collection
from app.ingestion.submission import Submission
from app.retrieval.options import plan_search
from app.retrieval.run import Models
from app.retrieval.search import search
from app.settings import Settings
from app.worker import Worker

SECONDS = 30


def settings_of(data: Path) -> Settings:
    return Settings(data=data, embedder="hashed")


@contextmanager
def opened(data: Path) -> Iterator[Services]:
    with closing(build_services(settings_of(data))) as services:
        yield services


def put(services: Services, collection: Collection, document_id: str, text: str) -> None:
    original = services.ingestion.originals(collection.id).write(text.encode())
    job = services.ingestion.submit(collection, Submission(document_id, original, media_type="text/plain")).job
    assert job is None or services.jobs.wait(job.id, SECONDS).state is JobState.SUCCEEDED


def made(services: Services, name: str) -> Collection:
    return create_collection(services.ingestion, name, title=None, description=None, settings={})


def found(services: Services, name: str) -> list[tuple[str, str, float]]:
    collection = services.collections.get(name)
    assert collection is not None
    plan = plan_search("harbour lantern", services.settings, {}, {})
    with services.opened.get(collection.id) as held:
        result = search(held, Models(services.embedders.of_collection(collection.embedding_model)), name, plan)
    return [(passage.chunk_id, passage.text, passage.score) for passage in result.passages]


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with two collections and a key."""
    folder = tmp_path_factory.mktemp("backup") / "data"
    with opened(folder) as services:
        first, second = made(services, "first"), made(services, "second")
        with Worker(services, warms_up=False).running():
            for number in range(5):
                put(services, first, f"d{number}", f"The harbour has lantern {number}.")
            put(services, second, "d", "Another harbour.")
        services.api_keys.create(
            "k", collection_ids=[first.id], role=Role.ASK, filter=None, expires_at=None, requests_per_minute=None
        )
    return folder


@pytest.fixture
def data(made_once: Path, tmp_path: Path) -> Path:
    """A folder of its own with the same."""
    return shutil.copytree(made_once, tmp_path / "data")


@pytest.fixture
def archive(data: Path, tmp_path: Path) -> Path:
    file = tmp_path / "backup.zip"
    with opened(data) as services, file.open("wb") as target:
        assert back_up(services, target) == 2
    return file


def test_what_is_restored_is_what_was_backed_up(data: Path, archive: Path, tmp_path: Path) -> None:
    assert restore(settings_of(tmp_path / "other"), archive) == 2
    with opened(data) as before, opened(tmp_path / "other") as after:
        for name in ("first", "second"):
            assert found(after, name) == found(before, name) != []
            collection = after.collections.get(name)
            assert collection == before.collections.get(name)
            assert collection is not None
            with after.opened.get(collection.id) as held:
                assert held.store.verify() == []
                assert held.verify() == []
                assert all(after.ingestion.originals_of(held).holds(digest) for digest in held.store.content_hashes())
        assert after.settings.data.joinpath("admin.key").read_text() == (data / "admin.key").read_text()
        (key,), _ = after.api_keys.list(None, limit=5, cursor=None)
        assert key.name == "k"
        collection = after.collections.get("first")
        assert collection is not None
        with Worker(after, warms_up=False).running():
            put(after, collection, "new", "One more harbour.")


def test_a_backup_taken_while_documents_are_written_is_whole(data: Path, tmp_path: Path) -> None:
    done, begun = threading.Event(), threading.Event()
    file = tmp_path / "backup.zip"
    with opened(data) as services, Worker(services, warms_up=False).running():
        collection = services.collections.get("first")
        assert collection is not None

        def write() -> None:
            number = 0
            while not done.is_set():
                put(services, collection, f"d{number % 7}", f"The harbour has lantern {number}.")
                name = f"brief{number}"
                remove_collection(services.ingestion, made(services, name))
                number += 1
                begun.set()

        writer = threading.Thread(target=write)
        writer.start()
        assert begun.wait(SECONDS)
        with file.open("wb") as target:
            back_up(services, target)
        done.set()
        writer.join()
    restore(settings_of(tmp_path / "other"), file)
    with opened(tmp_path / "other") as after, Worker(after, warms_up=False).running():
        for each in after.collections.every():
            for job in after.jobs.list([each.id], limit=200)[0]:
                assert after.jobs.wait(job.id, SECONDS).is_finished
        collection = after.collections.get("first")
        assert collection is not None
        with after.opened.get(collection.id) as held:
            assert held.store.verify() == []
            assert held.store.stats().documents["ready"] >= 5


def test_what_is_derived_or_temporary_stays_out(archive: Path) -> None:
    with zipfile.ZipFile(archive) as packed:
        names = packed.namelist()
    assert {"catalog.db", "admin.key", "manifest.json"} <= set(names)
    assert sum(name.endswith("collection.db") for name in names) == 2
    assert sum("/originals/" in name for name in names) == 6
    assert len(names) == 3 + 2 + 6


def test_a_folder_that_is_served_or_holds_data_is_left_alone(data: Path, archive: Path, tmp_path: Path) -> None:
    with pytest.raises(Conflict) as refused:
        restore(settings_of(data), archive)
    assert refused.value.code == "data_folder_not_empty"
    with opened(data) as services, Worker(services, warms_up=False).running():
        for force in (False, True):
            with pytest.raises(Conflict) as refused:
                restore(settings_of(data), archive, force=force)
            assert refused.value.code == "data_folder_in_use"


def test_force_replaces_what_is_there_and_keeps_the_models(data: Path, archive: Path) -> None:
    (data / "models").mkdir()
    (data / "models" / "m").touch()
    with opened(data) as services:
        remove_collection(services.ingestion, services.collections.get("first"))  # type: ignore[arg-type]
        made(services, "third")
    assert restore(settings_of(data), archive, force=True) == 2
    with opened(data) as services:
        assert sorted(each.name for each in services.collections.every()) == ["first", "second"]
        assert len(found(services, "first")) == 5
    assert (data / "models" / "m").exists()
    assert [path.name for path in data.iterdir() if path.name.startswith(".")] == []
    assert len([path for path in (data / "collections").iterdir() if path.name.startswith("col_")]) == 2


def rewritten(archive: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    target = BytesIO()
    with zipfile.ZipFile(archive) as packed, zipfile.ZipFile(target, "w") as written:
        for name in packed.namelist():
            data = change(name, packed.read(name))
            if data is not None:
                written.writestr(name, data)
    archive.write_bytes(target.getvalue())
    return archive


@pytest.mark.parametrize("part", ["catalog.db", "collection.db", "originals/"])
def test_a_damaged_backup_replaces_nothing(data: Path, archive: Path, part: str) -> None:
    before = (data / "catalog.db").read_bytes()
    damaged = rewritten(archive, lambda name, data: b"x" * len(data) if part in name else data)
    with pytest.raises(DamagedArchive):
        restore(settings_of(data), damaged, force=True)
    assert (data / "catalog.db").read_bytes() == before
    assert [path.name for path in data.iterdir() if path.name.startswith(".")] == []


def test_an_export_is_no_backup(data: Path, archive: Path, tmp_path: Path) -> None:
    other = rewritten(archive, lambda name, data: data.replace(b'"data_folder"', b'"collection"'))
    with pytest.raises(UnusableArchive):
        restore(settings_of(tmp_path / "other"), other)
    shutil.rmtree(data)
