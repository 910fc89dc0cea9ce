"""What every keyword index must make of a query beyond its terms."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app.indexes.port import IndexEntry, KeywordIndex, Restriction, Wording
from app.indexes.registry import INDEXES, create_index
from app.stores.port import Scope

EVERYTHING = Scope(None, None)
TEXTS = ("red fox runs", "fox red runs", "red car", "automobile far away from all others", "motor vehicle")
"""The text of chunk `i` of document `i`, from 1 on."""


def scope_of(*document_keys: int) -> Scope:
    return Scope(np.array(sorted(document_keys), np.int64), None)


@pytest.fixture(params=sorted(INDEXES))
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KeywordIndex]:
    index = create_index(tmp_path, "contract", request.param)
    nothing = np.zeros(0, np.float32)
    entries = [IndexEntry(key, key, text.split(), nothing) for key, text in enumerate(TEXTS, start=1)]
    with index.keyword.writing() as granted:
        assert granted
        index.keyword.apply(entries, [], 5)
    yield index.keyword
    index.close()


def test_a_required_phrase_keeps_out_what_holds_its_terms_apart(written: KeywordIndex) -> None:
    wording = Wording(restriction=Restriction(required=((("red", "fox"),),)))
    assert written.search(["red", "runs"], 10, EVERYTHING, wording).keys.tolist() == [1]


def test_one_of_a_required_phrases_forms_will_do(written: KeywordIndex) -> None:
    wording = Wording(restriction=Restriction(required=((("red", "fox"), ("car",)),)))
    assert sorted(written.search(["red"], 10, EVERYTHING, wording).keys.tolist()) == [1, 3]


def test_excluded_terms_and_phrases_keep_out_what_holds_them(written: KeywordIndex) -> None:
    wording = Wording(restriction=Restriction(excluded=(("red", "fox"), ("car",))))
    assert written.search(["red"], 10, EVERYTHING, wording).keys.tolist() == [2]


def test_a_restriction_changes_no_score(written: KeywordIndex) -> None:
    wording = Wording(restriction=Restriction(required=((("red", "fox"),),), excluded=(("car",),)))
    free = written.search(["red", "runs"], 10, EVERYTHING)
    bound = written.search(["red", "runs"], 10, EVERYTHING, wording)
    assert bound.scores[0] == pytest.approx(free.scores[free.keys.tolist().index(1)])


def test_a_raised_phrase_puts_its_holder_first_and_keeps_nothing_out(written: KeywordIndex) -> None:
    found = written.search(["red", "fox"], 10, EVERYTHING, Wording(raised=(("fox", "red"),)))
    assert found.keys.tolist() == [2, 1, 3]


def test_alternatives_find_and_the_best_of_them_counts_once(written: KeywordIndex) -> None:
    wording = Wording(alternatives={"car": (("automobile",), ("motor", "vehicle"), ("red",))})
    found = written.search(["car"], 10, EVERYTHING, wording)
    assert sorted(found.keys.tolist()) == [1, 2, 3, 4, 5]
    score_of = dict(zip(found.keys.tolist(), found.scores.tolist(), strict=True))
    assert score_of[3] == pytest.approx(float(written.search(["car"], 1, EVERYTHING).scores[0]))


def test_alternatives_find_where_no_chunk_holds_the_term(written: KeywordIndex) -> None:
    wording = Wording(alternatives={"limousine": (("car",),)})
    assert written.search(["limousine"], 10, EVERYTHING, wording).keys.tolist() == [3]


def test_what_a_restriction_admits_can_be_listed_and_looked_through(written: KeywordIndex) -> None:
    restriction = Restriction(required=((("red",),),), excluded=(("car",),))
    listed = written.holding(restriction, 2, EVERYTHING)
    assert listed is not None
    assert listed.tolist() == [1, 2]
    assert written.holding(restriction, 1, EVERYTHING) is None
    assert written.holding(restriction, 2, scope_of(2)).tolist() == [2]  # type: ignore[union-attr]
    assert written.admitted(restriction, np.array([5, 2, 3, 1], np.int64)).tolist() == [2, 1]


def test_terms_with_a_prefix_come_by_how_many_chunks_hold_them(written: KeywordIndex) -> None:
    assert written.terms_with_prefix("r", 10) == ["red", "runs"]
    assert written.terms_with_prefix("r", 1) == ["red"]
    assert written.terms_with_prefix("zz", 10) == []
