"""A key with a filter learns no word of the documents that the filter hides."""

from typing import Any

import pytest

from app.filters import Condition, Operator
from app.retrieval.plan import RerankOptions
from app.retrieval.planning import build_plan
from app.retrieval.query_terms import read_terms
from app.retrieval.run import Models, SearchRun
from app.retrieval.trace import Trace
from app.telemetry import StageTimer

PUBLIC = Condition("team", Operator.EQ, "public")


@pytest.fixture
def guarded(shelf: Any) -> Any:
    shelf.put("open", "the garden is open and visitors receive a map", team="public")
    shelf.put("hours", "opening hours of the garden and of the museum", team="public")
    shelf.put("secret", "the acquisition of kryptonite", team="board")
    return shelf


def test_a_guess_names_no_word_of_a_hidden_document(guarded: Any) -> None:
    assert guarded.search("kriptonite", mode="keyword").warnings[0].code == "fuzzy_match"
    assert guarded.search("kriptonite", mode="keyword", forced_filter=PUBLIC).warnings == ()


def test_a_word_of_hidden_documents_is_guessed_like_one_of_none(guarded: Any) -> None:
    guarded.put("typo", "museun", team="board")
    told = guarded.search("museun", mode="keyword", forced_filter=PUBLIC).warnings
    assert [notice.code for notice in told] == ["fuzzy_match"]


@pytest.mark.parametrize("options", [{}, {"as_you_type": True}, {"rerank": RerankOptions()}, {"mode": "keyword"}])
@pytest.mark.parametrize("word", ["kryptonite", "krypton"])
def test_a_word_of_hidden_documents_alone_changes_nothing(guarded: Any, word: str, options: Any) -> None:
    def told(query: str) -> Any:
        result = guarded.search(query, forced_filter=PUBLIC, fuzzy=False, explain=True, **options)
        hits = [(passage.chunk_id, passage.score, passage.fused, passage.rerank) for passage in result.passages]
        facts = [
            {name: fact for name, fact in stage.facts.items() if name != "terms"}
            for stage in result.trace
            if stage.stage != "dense"
        ]
        return hits, facts, sorted(result.term_weights.values())

    # The hashed embedder gives different words different vectors, so only what keywords add may be compared.
    assert told(f"garden {word}")[1:] == told("garden qqqqqq")[1:]


def test_words_alone_rerank_as_if_hidden_documents_were_not_there(guarded: Any) -> None:
    def scores(query: str) -> list[float | None]:
        options = {"mode": "dense", "rerank": RerankOptions(), "forced_filter": PUBLIC}
        return sorted(passage.rerank or 0.0 for passage in guarded.search(query, **options).passages)

    assert scores("garden kryptonite") == pytest.approx(scores("garden qqqqqqqqqq"), abs=1e-6)


def test_words_of_documents_that_are_seen_are_guessed_and_completed(guarded: Any) -> None:
    assert set(guarded.find("gardan", mode="keyword", forced_filter=PUBLIC)) == {"open", "hours"}
    assert guarded.find("muse", mode="keyword", as_you_type=True, forced_filter=PUBLIC) == ["hours"]


def completions(guarded: Any, text: str) -> frozenset[str]:
    """Return every term that the keyword leg looks up for a key that sees the public documents alone."""
    plan = build_plan(text, guarded.settings, forced_filter=PUBLIC, as_you_type=True)
    opened = guarded.opened
    opened.fresh()
    run = SearchRun(opened, Models(), plan, opened.store.scope(plan.filter, None), StageTimer(), Trace(wanted=False))
    return read_terms(run, text).forms


@pytest.mark.parametrize("hidden", [1, 60, 700])
def test_words_of_hidden_documents_take_no_completion_from_those_that_are_seen(guarded: Any, hidden: int) -> None:
    """Each hidden word is in two chunks, more than any word that is seen."""
    crowd = [f"muse{number:03}x" for number in range(hidden)]
    for name in ("first", "second"):
        guarded.put(name, *(" ".join(crowd[place : place + 50]) for place in range(0, hidden, 50)), team="board")
    guarded.put("more", "musette", team="public")
    assert set(guarded.find("muse", mode="keyword", as_you_type=True, forced_filter=PUBLIC)) == {"hours", "more"}
    forms = completions(guarded, "muse")
    assert forms >= {"museum", "musett"}
    assert not forms & set(crowd)


def test_words_that_are_seen_and_hidden_ones_may_stand_in_any_order(guarded: Any) -> None:
    words = [f"zeta{number:02}" for number in range(60)]
    for place, word in enumerate(words):
        guarded.put(word, *[word] * (1 + place % 3), team="public" if place % 2 else "board")
    assert {word for word in completions(guarded, "zeta") if word in words} == set(words[1::2])
