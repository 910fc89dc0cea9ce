"""What every engine's index must do, leg by leg."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from app.embedding_space import EmbeddingSpace
from app.indexes.port import CollectionIndex, DenseIndex, Follower, IndexEntry, KeywordIndex, Wording
from app.indexes.registry import INDEXES, create_index
from app.stores.port import Scope

EVERYTHING = Scope(None, None)
DIMENSIONS = 24
SIGNATURE = "contract"


def scope_of(*document_keys: int) -> Scope:
    return Scope(np.array(sorted(document_keys), np.int64), None)


def unit_vectors(count: int, seed: int = 0) -> np.ndarray:
    # Vectors of a model point roughly one way, which is what quantisation has to cope with.
    vectors = np.random.default_rng(seed).normal(0.3, 1, (count, DIMENSIONS)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def entries(texts: Sequence[str], first: int = 1, seed: int = 0) -> list[IndexEntry]:
    """Chunk `first + i` of document `first + i`."""
    vectors = unit_vectors(len(texts), seed)
    return [IndexEntry(first + place, first + place, text.split(), vectors[place]) for place, text in enumerate(texts)]


def write(index: Follower, upserts: Sequence[IndexEntry], deletes: Sequence[int] = (), *, revision: int) -> None:
    with index.writing() as granted:
        assert granted
        index.apply(upserts, deletes, revision)


def write_sixty(keyword: KeywordIndex) -> None:
    """Write sixty texts of a few words, the same each time, unless they are there already."""
    if not keyword.size():
        random = np.random.default_rng(2)
        texts = [" ".join(random.choice(list("abcdefgh"), size=random.integers(1, 9))) for _ in range(60)]
        write(keyword, entries(texts), revision=1)


def find(leg: Follower, limit: int = 10, scope: Scope = EVERYTHING) -> list[int]:
    """Search either leg for something that every entry of these tests answers to."""
    if leg.wants_terms:
        return leg.search(["word"], limit, scope).keys.tolist()  # type: ignore[attr-defined]
    return leg.search(unit_vectors(1, seed=9)[0], limit, scope).keys.tolist()  # type: ignore[attr-defined]


@pytest.fixture(params=sorted(INDEXES))
def open_index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], CollectionIndex]]:
    """Return what opens the same collection's index again and again."""
    opened: list[CollectionIndex] = []

    def open_again() -> CollectionIndex:
        opened.append(create_index(tmp_path, SIGNATURE, request.param))
        return opened[-1]

    yield open_again
    for index in opened:
        index.close()


@pytest.fixture
def keyword(open_index: Callable[[], CollectionIndex]) -> KeywordIndex:
    return open_index().keyword


@pytest.fixture
def dense(open_index: Callable[[], CollectionIndex]) -> DenseIndex:
    return open_index().dense


@pytest.fixture(params=["keyword", "dense", "content", "parent"])
def open_leg(request: pytest.FixtureRequest, open_index: Callable[[], CollectionIndex]) -> Callable[[], Follower]:
    if request.param in ("content", "parent"):
        return lambda: open_index().with_fields({request.param}).fields[request.param]
    return lambda: getattr(open_index(), request.param)


@pytest.fixture
def leg(open_leg: Callable[[], Follower]) -> Follower:
    return open_leg()


def test_dense_indexes_of_other_spaces_stand_in_files_of_their_own_until_they_are_removed(
    open_index: Callable[[], CollectionIndex],
) -> None:
    one, other = (EmbeddingSpace("test", name, DIMENSIONS, (1.0,)) for name in ("one", "other"))
    index = open_index().in_space(one)
    write(index.dense, entries(["word a"]), revision=1)
    moved = index.in_space(other)
    assert moved.dense.revision() == 0
    write(moved.dense, entries(["word a", "word b"]), revision=2)
    for each in (index, moved):
        each.dense.close()
    assert [open_index().in_space(space).dense.revision() for space in (one, other, one)] == [1, 2, 1]
    moved.remove_others([moved.dense])
    assert [open_index().in_space(space).dense.revision() for space in (one, other)] == [0, 2]


class TestEitherLeg:
    def test_a_new_index_is_empty_and_at_revision_zero(self, leg: Follower) -> None:
        assert leg.revision() == 0
        assert leg.keys().tolist() == []
        assert find(leg) == []

    def test_a_batch_becomes_visible_together_with_its_revision(self, leg: Follower) -> None:
        write(leg, entries(["word a", "word b", "word c"]), revision=7)
        assert leg.revision() == 7
        assert leg.keys().tolist() == [1, 2, 3]
        assert sorted(find(leg)) == [1, 2, 3]

    def test_a_deleted_chunk_is_found_no_more(self, leg: Follower) -> None:
        write(leg, entries(["word a", "word b", "word c"]), revision=3)
        write(leg, [], [2], revision=4)
        assert leg.keys().tolist() == [1, 3]
        assert sorted(find(leg)) == [1, 3]

    def test_after_erasing_no_file_holds_what_was_deleted_and_none_that_is_behind_brings_it_back(
        self, open_leg: Callable[[], Follower], tmp_path: Path
    ) -> None:
        chunks = entries(["word kept", "word quagmire"])
        gone = chunks[1].vector.tobytes()
        leg, behind = open_leg(), open_leg()
        write(leg, chunks, revision=2)
        if not leg.wants_terms:
            # Each process follows for itself.
            write(behind, chunks, revision=2)
        write(leg, [], [2], revision=3)
        with leg.writing() as granted:
            assert granted
            if not leg.erase():
                leg.replace([chunks[:1]], 3)
                assert leg.erase()
        behind.close()
        held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert b"quagmire" not in held
        assert gone not in held
        assert open_leg().keys().tolist() == [1]

    def test_deleting_what_is_not_there_changes_only_the_revision(self, leg: Follower) -> None:
        write(leg, entries(["word a"]), revision=1)
        write(leg, [], [41, 42], revision=3)
        assert (leg.revision(), leg.keys().tolist()) == (3, [1])

    def test_writing_a_chunk_again_leaves_it_there_once(self, leg: Follower) -> None:
        write(leg, entries(["word a", "word b"]), revision=2)
        write(leg, entries(["word a", "word c"], seed=5), revision=4)
        assert leg.keys().tolist() == [1, 2]
        assert sorted(find(leg)) == [1, 2]

    def test_replacing_leaves_only_what_is_new(self, leg: Follower) -> None:
        write(leg, entries(["word a", "word b", "word c"]), revision=9)
        with leg.writing() as granted:
            assert granted
            leg.replace(iter([entries(["word d"], 3), entries(["word e"], 8)]), 5)
        assert leg.revision() == 5
        assert leg.keys().tolist() == [3, 8]
        assert sorted(find(leg)) == [3, 8]

    def test_replacing_by_nothing_empties_it(self, leg: Follower) -> None:
        write(leg, entries(["word a"]), revision=1)
        with leg.writing():
            leg.replace(iter(()), 6)
        assert (leg.revision(), leg.keys().tolist(), find(leg)) == (6, [], [])

    def test_the_old_content_answers_until_the_new_one_is_whole(self, leg: Follower) -> None:
        write(leg, entries(["word a", "word b"]), revision=2)
        seen: list[list[int]] = []

        def batches() -> Iterator[list[IndexEntry]]:
            yield entries(["word c"], 3)
            seen.append(sorted(find(leg)))

        with leg.writing():
            leg.replace(batches(), 3)
        assert seen == [[1, 2]]
        assert find(leg) == [3]

    def test_a_replacement_that_fails_changes_nothing(self, open_leg: Callable[[], Follower]) -> None:
        leg = open_leg()
        write(leg, entries(["word a", "word b"]), revision=2)

        def batches() -> Iterator[list[IndexEntry]]:
            yield entries(["word c"], 3)
            raise RuntimeError("the store went away")

        with pytest.raises(RuntimeError, match="went away"), leg.writing():
            leg.replace(batches(), 3)
        assert (leg.revision(), sorted(find(leg))) == (2, [1, 2])
        write(leg, entries(["word d"], 4), revision=4)
        assert (leg.revision(), leg.keys().tolist()) == (4, [1, 2, 4])

    def test_what_was_written_is_there_after_reopening(self, open_leg: Callable[[], Follower]) -> None:
        leg = open_leg()
        write(leg, entries(["word a", "word b"]), revision=2)
        write(leg, [], [1], revision=3)
        leg.close()
        again = open_leg()
        assert (again.revision(), again.keys().tolist(), find(again)) == (3, [2], [2])

    def test_only_one_may_write_at_a_time(self, leg: Follower) -> None:
        granted: list[bool] = []

        def try_to_write() -> None:
            with leg.writing() as mine:
                granted.append(mine)

        with leg.writing() as first:
            assert first
            thread = threading.Thread(target=try_to_write)
            thread.start()
            thread.join()
        try_to_write()
        assert granted == [False, True]

    def test_a_writer_that_fails_gives_the_right_back(self, leg: Follower) -> None:
        with pytest.raises(RuntimeError), leg.writing():
            raise RuntimeError
        with leg.writing() as granted:
            assert granted

    def test_searches_go_on_beside_a_writer(self, leg: Follower) -> None:
        write(leg, entries(["word"] * 40), revision=1)
        wrong: list[Any] = []
        done = threading.Event()

        def search() -> None:
            while not done.is_set():
                found = find(leg, limit=100)
                if len(set(found)) != len(found) or not set(range(1, 41)) <= set(found) <= set(range(1, 81)):
                    wrong.append(found)

        threads = [threading.Thread(target=search) for _ in range(2)]
        for thread in threads:
            thread.start()
        for revision in range(2, 12):
            if revision % 2:
                write(leg, [], range(41, 81), revision=revision)
            else:
                write(leg, entries(["word"] * 40, 41), revision=revision)
        done.set()
        for thread in threads:
            thread.join()
        assert wrong == []

    def test_a_scope_comes_before_the_ranking(self, leg: Follower) -> None:
        write(leg, entries(["word"] * 300), revision=1)
        assert sorted(find(leg, limit=5, scope=scope_of(7, 77, 177, 277, 299))) == [7, 77, 177, 277, 299]
        assert sorted(find(leg, limit=400, scope=scope_of(*range(1, 301, 2)))) == list(range(1, 301, 2))
        assert find(leg, limit=5, scope=scope_of()) == []
        assert find(leg, limit=5, scope=scope_of(9_999)) == []

    def test_more_than_there_is_returns_all_of_it(self, leg: Follower) -> None:
        write(leg, entries(["word"] * 30), revision=1)
        assert sorted(find(leg, limit=1000)) == list(range(1, 31))


class TestDense:
    def test_the_first_forty_hold_the_true_ten(self, dense: DenseIndex) -> None:
        vectors = unit_vectors(2000)
        write(dense, [IndexEntry(key + 1, key + 1, (), vector) for key, vector in enumerate(vectors)], revision=1)
        for query in unit_vectors(20, seed=3):
            true = np.argsort(-(vectors @ query), kind="stable")[:10] + 1
            assert set(true.tolist()) <= set(dense.search(query, 40, EVERYTHING).keys.tolist())

    def test_scores_are_cosines_but_for_rounding_and_best_first(self, dense: DenseIndex) -> None:
        vectors = unit_vectors(300)
        write(dense, [IndexEntry(key + 1, key + 1, (), vector) for key, vector in enumerate(vectors)], revision=1)
        query = unit_vectors(1, seed=4)[0]
        found = dense.search(query, 300, EVERYTHING)
        assert found.keys.dtype == np.int64
        assert found.scores.dtype == np.float32
        assert np.all(np.diff(found.scores) <= 0)
        np.testing.assert_allclose(found.scores, vectors[found.keys - 1] @ query, atol=0.02)

    def test_equal_vectors_come_by_their_keys(self, dense: DenseIndex) -> None:
        same = unit_vectors(1)[0]
        for first in (50, 10, 30):
            write(dense, [IndexEntry(key, 1, (), same) for key in range(first, first + 10)], revision=first)
        assert dense.search(same, 12, EVERYTHING).keys.tolist() == [*range(10, 20), 30, 31]


class TestKeyword:
    def test_a_chunk_without_any_of_the_terms_is_never_returned(self, keyword: KeywordIndex) -> None:
        write(keyword, entries(["red fox", "blue fish", "red fish", "green"]), revision=4)
        assert sorted(keyword.search(["red", "absent"], 10, EVERYTHING).keys.tolist()) == [1, 3]
        assert keyword.search(["absent"], 10, EVERYTHING).keys.tolist() == []
        assert keyword.search([], 10, EVERYTHING).keys.tolist() == []

    def test_ranking_and_scores_agree_with_bm25(self, keyword: KeywordIndex) -> None:
        random = np.random.default_rng(1)
        words = [f"w{number}" for number in range(200)]
        weights = 1 / np.arange(1, 201)
        # Up to 40 terms a chunk: above that tantivy keeps lengths in one byte, rounded down by up to an eighth.
        texts = [list(random.choice(words, size=random.integers(3, 40), p=weights / weights.sum())) for _ in range(400)]
        write(keyword, entries([" ".join(text) for text in texts]), revision=1)
        reference = BM25Okapi(texts, k1=1.2, b=0.75)
        sizes = len(texts)
        # rank-bm25's inverse document frequency can be negative; tantivy, as Lucene, adds one inside the logarithm.
        for word in reference.idf:
            frequency = sum(word in text for text in texts)
            reference.idf[word] = np.log(1 + (sizes - frequency + 0.5) / (frequency + 0.5))
        for _ in range(30):
            query = list(random.choice(words, size=5, replace=False))
            found = keyword.search(query, 50, EVERYTHING)
            # tantivy multiplies by k1 + 1 as rank-bm25 does.
            expected = reference.get_scores(query)[found.keys - 1]
            np.testing.assert_allclose(found.scores, expected, rtol=0.03)
            cut = np.sort(reference.get_scores(query))[::-1][len(found.keys) - 1]
            assert np.all(expected >= cut * 0.97)

    def test_a_repeated_term_counts_as_often_as_it_is_asked(self, keyword: KeywordIndex) -> None:
        write(keyword, entries(["red", "blue", "red blue"]), revision=3)
        once = keyword.search(["red", "blue"], 3, EVERYTHING)
        twice = keyword.search(["red", "red", "blue"], 3, EVERYTHING)
        single = keyword.search(["red"], 3, EVERYTHING)
        score = dict(zip(twice.keys.tolist(), twice.scores.tolist(), strict=True))
        plain = dict(zip(single.keys.tolist(), single.scores.tolist(), strict=True))
        assert score[1] == pytest.approx(2 * plain[1])
        assert once.keys.tolist() == [3, 1, 2]
        assert twice.keys.tolist() == [3, 1, 2]
        assert score[1] > score[2]

    def test_equal_scores_come_by_their_keys(self, keyword: KeywordIndex) -> None:
        for first in (500, 100, 300):
            write(keyword, entries(["same words"] * 100, first), revision=first)
        assert keyword.search(["same"], 150, EVERYTHING).keys.tolist() == [*range(100, 200), *range(300, 350)]
        scope = scope_of(*range(100, 600, 2))
        assert keyword.search(["same"], 60, scope).keys.tolist() == [*range(100, 200, 2), *range(300, 320, 2)]

    def test_frequencies_and_size_count_live_chunks(self, keyword: KeywordIndex) -> None:
        write(keyword, entries(["red fox", "red fish", "blue red red"]), revision=3)
        assert keyword.document_frequencies(["red", "fish", "absent"]) == [3, 1, 0]
        assert keyword.size() == 3
        write(keyword, [], [2], revision=4)
        assert keyword.document_frequencies(["red", "fish", "absent"]) == [2, 0, 0]
        assert keyword.size() == 2

    @pytest.mark.parametrize(
        "term", ["*", "NEAR(", '"unbalanced', "col:val", "AND", "🦊", "a/b", "\\", "don't", "-", "猫"]
    )
    def test_no_term_is_an_operator(self, keyword: KeywordIndex, term: str) -> None:
        write(keyword, entries([f"before {term} after", "before after"]), revision=2)
        assert keyword.search([term], 10, EVERYTHING).keys.tolist() == [1]

    def test_thousands_of_terms_are_one_query(self, keyword: KeywordIndex) -> None:
        write(keyword, entries([f"t{number} common" for number in range(3000)]), revision=1)
        found = keyword.search([f"t{number}" for number in range(5000)] + ["common"], 100, EVERYTHING)
        assert len(found.keys) == 100

    @settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        query=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4, unique=True),
        chosen=st.sets(st.integers(1, 60)),
        limit=st.integers(1, 70),
    )
    def test_a_filtered_search_is_a_filtered_list_of_all_hits(
        self, keyword: KeywordIndex, query: list[str], chosen: set[int], limit: int
    ) -> None:
        write_sixty(keyword)
        everything = keyword.search(query, 60, EVERYTHING)
        inside = np.isin(everything.keys, sorted(chosen))
        found = keyword.search(query, limit, scope_of(*chosen))
        np.testing.assert_allclose(found.scores, everything.scores[inside][:limit], rtol=1e-5)
        assert set(found.keys.tolist()) <= chosen

    @settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        query=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4, unique=True),
        chosen=st.sets(st.integers(1, 60)),
        documents=st.none() | st.sets(st.integers(1, 60)),
        limit=st.integers(1, 70),
    )
    def test_a_search_inside_some_chunks_is_a_filtered_list_of_all_hits(
        self, keyword: KeywordIndex, query: list[str], chosen: set[int], documents: set[int] | None, limit: int
    ) -> None:
        write_sixty(keyword)
        everything = keyword.search(query, 60, EVERYTHING)
        allowed = chosen if documents is None else chosen & documents
        inside = np.isin(everything.keys, sorted(allowed))
        scope = EVERYTHING if documents is None else scope_of(*documents)
        wording = Wording(inside=np.array(sorted(chosen), np.int64))
        found = keyword.search(query, limit, scope, wording)
        np.testing.assert_allclose(found.scores, everything.scores[inside][:limit], rtol=1e-5)
        assert set(found.keys.tolist()) <= allowed
