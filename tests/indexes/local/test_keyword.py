import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from app.errors import NotFound, StorageFull, Unavailable
from app.indexes.local.keyword import TantivyKeywordIndex
from app.indexes.local.keyword_files import system_failure
from app.indexes.port import IndexEntry
from app.stores.port import Scope

EVERYTHING = Scope(None, None)
NO_VECTOR = np.zeros(0, np.float32)


def entries(keys: Sequence[int], text: str = "word") -> list[IndexEntry]:
    return [IndexEntry(key, key, text.split(), NO_VECTOR) for key in keys]


def write(
    index: TantivyKeywordIndex, upserts: Sequence[IndexEntry], deletes: Sequence[int] = (), revision: int = 1
) -> None:
    with index.writing() as granted:
        assert granted
        index.apply(upserts, deletes, revision)


def found(index: TantivyKeywordIndex, term: str = "word", scope: Scope = EVERYTHING, limit: int = 10_000) -> list[int]:
    # A search looks into what this has last seen.
    index.revision()
    return index.search([term], limit, scope).keys.tolist()


@pytest.fixture
def open_index(tmp_path: Path) -> Callable[..., TantivyKeywordIndex]:
    """Return what opens the index as another process would."""
    return lambda signature="s": TantivyKeywordIndex(tmp_path / "index" / "keyword", signature)


@pytest.fixture
def index(open_index: Callable[..., TantivyKeywordIndex]) -> TantivyKeywordIndex:
    return open_index()


class TestSeveralProcesses:
    def test_what_one_commits_the_other_sees_at_once(
        self, index: TantivyKeywordIndex, open_index: Callable[..., TantivyKeywordIndex]
    ) -> None:
        other = open_index()
        for revision in range(1, 6):
            write(index, entries([revision]), revision=revision)
            assert other.revision() == revision
            assert found(other) == list(range(1, revision + 1))

    def test_only_one_writes_and_the_next_goes_on_from_there(
        self, index: TantivyKeywordIndex, open_index: Callable[..., TantivyKeywordIndex]
    ) -> None:
        other = open_index()
        with index.writing() as mine, other.writing() as its:
            assert (mine, its) == (True, False)
            index.apply(entries([1]), [], 3)
        with other.writing() as its:
            assert its
            assert other.revision() == 3
            other.apply(entries([2]), [], 4)
        assert found(index) == [1, 2]

    def test_a_writer_that_was_killed_blocks_nobody_and_leaves_nothing_half_written(
        self, index: TantivyKeywordIndex, open_index: Callable[..., TantivyKeywordIndex], tmp_path: Path
    ) -> None:
        write(index, entries([1, 2]), revision=2)
        script = (
            "import sys, time; from pathlib import Path; import numpy as np\n"
            "from app.indexes.local.keyword import TantivyKeywordIndex\n"
            "from app.indexes.port import IndexEntry\n"
            "index = TantivyKeywordIndex(Path(sys.argv[1]), 's')\n"
            "def batches():\n"
            "    yield [IndexEntry(n, n, ['word', str(n)], np.zeros(0, np.float32)) for n in range(50_000)]\n"
            "    print('ready', flush=True); time.sleep(60)\n"
            "with index.writing(): index.replace(batches(), 9)\n"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / "index" / "keyword")], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        with child.stdout:
            assert child.stdout.readline() == b"ready\n"
            child.kill()
            child.wait()
        assert (index.revision(), found(index)) == (2, [1, 2])
        again = open_index()
        write(again, entries([3]), revision=3)
        assert found(index) == [1, 2, 3]


class TestDamage:
    @pytest.mark.parametrize("suffix", ["meta.json", ".managed.json", ".idx", ".term", ".fast", ".fieldnorm", ".store"])
    @pytest.mark.parametrize("damage", ["truncated", "overwritten", "removed"])
    def test_a_damaged_index_is_made_anew_and_says_so(
        self,
        index: TantivyKeywordIndex,
        open_index: Callable[..., TantivyKeywordIndex],
        tmp_path: Path,
        caplog: pytest.LogCaptureFixture,
        suffix: str,
        damage: str,
    ) -> None:
        write(index, entries([1, 2]), revision=2)
        files = [path for path in (tmp_path / "index" / "keyword").iterdir() if path.name.endswith(suffix)]
        assert files
        for path in files:
            size = path.stat().st_size
            if damage == "removed":
                path.unlink()
            elif damage == "truncated":
                os.truncate(path, size // 2)
            else:
                path.write_bytes(bytes(np.random.default_rng(1).integers(0, 256, size, np.uint8)))
        with caplog.at_level(logging.WARNING):
            again = open_index()
        if again.revision() == 2:
            # Without the list of its files tantivy still reads all of them.
            assert (suffix, damage) == (".managed.json", "removed")
            assert found(again) == [1, 2]
            return
        assert "made anew" in caplog.text
        assert (again.revision(), found(again)) == (0, [])
        write(again, entries([7]), revision=5)
        assert (again.revision(), found(again)) == (5, [7])

    def test_an_index_of_another_analysis_is_made_anew(
        self, index: TantivyKeywordIndex, open_index: Callable[..., TantivyKeywordIndex]
    ) -> None:
        write(index, entries([1]), revision=2)
        assert open_index("s").revision() == 2
        assert open_index("t").revision() == 0

    @pytest.mark.parametrize("is_listed", [True, False])
    def test_files_of_a_killed_commit_do_not_stop_the_next_one(
        self, index: TantivyKeywordIndex, tmp_path: Path, is_listed: bool
    ) -> None:
        folder, twin = tmp_path / "index" / "keyword", tmp_path / "twin" / "keyword"
        write(index, entries(range(1, 20)), revision=1)
        shutil.copytree(folder, twin)
        write(TantivyKeywordIndex(twin, "s"), [], [5], revision=2)
        (leftover,) = (path for path in twin.glob("*.del") if not (folder / path.name).exists())
        shutil.copy(leftover, folder)
        if is_listed:
            shutil.copy(twin / ".managed.json", folder)
            write(index, [], [6], revision=2)
            assert found(index) == [*range(1, 6), *range(7, 20)]
            return
        # A file that tantivy does not know of cannot be told from damage.
        with pytest.raises(Unavailable):
            write(index, [], [6], revision=2)
        assert (index.revision(), found(index)) == (0, [])
        write(index, entries([1]), revision=2)
        assert found(index) == [1]

    def test_files_that_vanish_in_use_are_made_anew(self, index: TantivyKeywordIndex, tmp_path: Path) -> None:
        write(index, entries([1]), revision=2)
        shutil.rmtree(tmp_path / "index" / "keyword")
        assert (index.revision(), found(index)) == (0, [])
        write(index, entries([2]), revision=3)
        assert found(index) == [2]

    def test_a_deleted_collection_does_not_come_back(self, index: TantivyKeywordIndex, tmp_path: Path) -> None:
        write(index, entries([1]), revision=2)
        shutil.rmtree(tmp_path)
        for use in (index.revision, lambda: write(index, entries([2])), lambda: found(index)):
            with pytest.raises(NotFound):
                use()
        assert not tmp_path.exists()

    def test_a_revision_that_cannot_be_written_is_told_and_caught_up(
        self, index: TantivyKeywordIndex, tmp_path: Path
    ) -> None:
        write(index, entries([1]), revision=1)
        obstacle = tmp_path / "index" / "keyword" / "revision.new"
        obstacle.mkdir()
        with pytest.raises(Unavailable):
            write(index, entries([2]), revision=2)
        assert index.revision() == 1
        obstacle.rmdir()
        write(index, entries([2]), revision=2)
        assert (index.revision(), found(index), index.size()) == (2, [1, 2], 2)

    def test_what_the_system_cannot_do_is_not_damage(self) -> None:
        full = ValueError("An IO error occurred: 'Os { code: 28, kind: StorageFull, message: \"No space left\" }'")
        busy = ValueError("IoError { io_error: Os { code: 24, kind: Uncategorized } }")
        assert isinstance(system_failure(full), StorageFull)
        assert isinstance(system_failure(busy), Unavailable)
        assert isinstance(system_failure(PermissionError(13, "no")), Unavailable)
        assert system_failure(ValueError("Data corrupted: 'Footer magic byte mismatch'")) is None
        assert system_failure(FileNotFoundError(2, "gone")) is None


class TestDeletedChunks:
    def test_an_index_is_worn_when_more_is_deleted_than_live(self, index: TantivyKeywordIndex) -> None:
        write(index, entries(range(1, 3001)), revision=1)
        assert not index.is_worn()
        write(index, [], range(1, 2001), revision=2)
        assert index.is_worn()
        assert index.size() == 1000
        with index.writing():
            index.replace(iter([entries(range(2001, 3001))]), 3)
        assert not index.is_worn()

    def test_the_frequency_of_a_rare_term_is_exact_and_of_a_common_one_near(self, index: TantivyKeywordIndex) -> None:
        write(index, entries(range(1, 2001)), revision=1)
        write(index, entries(range(2001, 2011), "word rare"), revision=2)
        write(index, [], [*range(1, 501), *range(2001, 2005)], revision=3)
        common, rare = index.document_frequencies(["word", "rare"])
        assert rare == 6
        assert common == pytest.approx(1506, rel=0.01)

    def test_many_small_writes_are_merged(self, index: TantivyKeywordIndex, tmp_path: Path) -> None:
        for revision in range(1, 31):
            write(index, entries([revision]), revision=revision)
        assert len(list((tmp_path / "index" / "keyword").glob("*.term"))) < 16
        assert found(index) == list(range(1, 31))

    def test_no_files_are_left_of_processes_that_wrote_once_and_ended(
        self, index: TantivyKeywordIndex, open_index: Callable[..., TantivyKeywordIndex], tmp_path: Path
    ) -> None:
        for revision in range(1, 13):
            write(index if revision % 2 else open_index(), entries([revision]), [revision - 1], revision=revision)
        with index.writing():
            index.replace(iter([entries([1])]), 13)
        write(index, entries([2]), revision=14)
        assert len(list((tmp_path / "index" / "keyword").glob("*.term"))) <= 4


class TestScopes:
    @pytest.mark.parametrize("share", [0.001, 0.01, 0.1, 0.5, 0.9])
    def test_every_size_of_scope_gives_what_filtering_all_hits_gives(
        self, index: TantivyKeywordIndex, share: float
    ) -> None:
        random = np.random.default_rng(3)
        texts = [" ".join(random.choice(list("abcdef"), size=random.integers(1, 12))) for _ in range(4000)]
        write(index, [IndexEntry(n, n // 3, text.split(), NO_VECTOR) for n, text in enumerate(texts)], revision=1)
        documents = np.flatnonzero(random.random(1334) < share).astype(np.int64)
        everything = index.search(["a", "b"], 4000, EVERYTHING)
        expected = np.isin(everything.keys // 3, documents)
        for limit in (1, 10, 100, 2000):
            some = index.search(["a", "b"], limit, Scope(documents, None))
            np.testing.assert_allclose(some.scores, everything.scores[expected][:limit], rtol=1e-5)
            assert np.isin(some.keys // 3, documents).all()


def test_many_commits_score_as_one_does(index: TantivyKeywordIndex, tmp_path: Path) -> None:
    texts = {key: " ".join(["word"] * (key % 3 + 1) + ["other"] * (key % 5)) for key in range(1, 40)}
    for key, text in texts.items():
        write(index, entries([key], text), revision=key)
    whole = TantivyKeywordIndex(tmp_path / "whole" / "keyword", "s")
    write(whole, [entry for key, text in texts.items() for entry in entries([key], text)], revision=39)
    one, other = (some.search(["word", "other"], 40, EVERYTHING) for some in (index, whole))
    assert one.keys.tolist() == other.keys.tolist()
    assert one.scores.tolist() == other.scores.tolist()


def test_changes_that_are_followed_again_find_their_work_done(index: TantivyKeywordIndex, tmp_path: Path) -> None:
    write(index, entries([1, 2]), revision=2)
    (tmp_path / "index" / "keyword" / "revision").write_text("1")
    before = index.search(["word"], 10, EVERYTHING)
    assert index.revision() == 1
    write(index, entries([2]), revision=2)
    after = index.search(["word"], 10, EVERYTHING)
    assert (index.revision(), after.scores.tolist()) == (2, before.scores.tolist())
