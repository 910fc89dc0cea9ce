"""A collection's default options never make a request wrong that is right by itself."""

from typing import Any

import pytest
from hypothesis import given as each
from hypothesis import strategies as st

from app.errors import InvalidRequest
from app.retrieval.options import plan_search
from app.settings import Settings

SETTINGS = Settings()
LEXICAL = {"rerank": {"model": "lexical"}, "min_score": 0.5}
COSINE = {"min_score": 0.8, "min_score_on": "dense"}


def left_out(plan: Any) -> list[str]:
    return [name for notice in plan.notices for name in notice.extra["options"]]


@pytest.mark.parametrize(
    ("defaults", "given"),
    [
        (LEXICAL, {"rerank": None}),
        (LEXICAL, {"rerank": {"model": "embedding"}}),
        (LEXICAL, {"rerank": {"model": "llm"}}),
        (LEXICAL, {"min_score_on": "dense", "min_score": None, "rerank": None}),
        ({"rerank": {"model": "llm"}, "min_score": 0.5}, {"rerank": {"model": "llm", "method": "listwise"}}),
        (LEXICAL, {"mode": "dense", "rerank": None}),
        ({"mode": "dense", "min_score": 0.8}, {"mode": "keyword"}),
        ({"mode": "dense", "min_score": 0.8}, {"mode": "hybrid"}),
        ({"mode": "dense", "min_score": 0.8}, {"rerank": {"model": "lexical"}}),
        (COSINE, {"mode": "keyword"}),
        (COSINE, {"fusion": {"alpha": 0}}),
        (COSINE, {"fusion": {"method": "rrf", "weights": {"dense": 0}}}),
    ],
)
def test_a_default_minimum_is_for_the_score_that_the_defaults_give(defaults: Any, given: Any) -> None:
    if given.get("min_score_on"):
        given = {name: value for name, value in given.items() if name != "min_score_on"}
    plan = plan_search("q", SETTINGS, given, defaults)
    assert (plan.min_score, plan.min_score_on) == (None, None)
    silent = "min_score" in given
    assert left_out(plan) == ([] if silent else [name for name in COSINE if name in defaults])


@pytest.mark.parametrize(
    ("defaults", "given"),
    [
        (LEXICAL, {"rerank": {"model": "lexical", "candidates": 50}}),
        (LEXICAL, {"rerank": {"candidates": 50}, "mode": "keyword"}),
        (COSINE, {"mode": "dense"}),
        (COSINE, {"rerank": {"model": "lexical"}}),
        (COSINE, {"fusion": {"alpha": 1}}),
    ],
)
def test_a_default_minimum_stays_where_its_score_is(defaults: Any, given: Any) -> None:
    plan = plan_search("q", SETTINGS, given, defaults)
    assert (plan.min_score, plan.min_score_on) == (defaults["min_score"], defaults.get("min_score_on"))
    assert plan.notices == ()


def test_a_request_without_a_minimum_has_none_and_no_word_is_lost_on_it() -> None:
    plan = plan_search("q", SETTINGS, {"min_score": None}, COSINE)
    assert (plan.min_score, plan.min_score_on, plan.notices) == (None, None, ())


@pytest.mark.parametrize(("defaults", "name"), [({"mode": "keyword"}, "mode"), ({"fusion": {"alpha": 0.0}}, "fusion")])
def test_a_default_that_takes_the_leg_away_gives_way_to_the_requests_minimum(defaults: Any, name: str) -> None:
    plan = plan_search("q", SETTINGS, COSINE, {"highlight": True, **defaults})
    assert plan.legs == ("dense", "keyword")
    assert (plan.min_score_on, plan.highlight) == ("dense", True)
    assert left_out(plan) == [name]


@pytest.mark.parametrize(
    ("given", "defaults", "numbers"),
    [
        ({"candidates": 20}, {"top_k": 50}, (20, 20)),
        ({"candidates": 20}, {"top_k": 50, "rerank": {}}, (20, 20)),
        ({"rerank": {"candidates": 10}}, {"top_k": 50}, (10, 100)),
        ({"rerank": {"candidates": 40}}, {"candidates": 20}, (5, 40)),
        ({"top_k": 80}, {"candidates": 50}, (80, 80)),
    ],
)
def test_default_numbers_move_to_fit_those_of_the_request(given: Any, defaults: Any, numbers: Any) -> None:
    plan = plan_search("q", SETTINGS, given, defaults)
    assert (plan.top_k, plan.candidates) == numbers
    assert plan.notices == ()


@pytest.mark.parametrize(
    ("settings", "default"),
    [
        ({"max_queries": 2}, {"queries": ["a", "b"]}),
        ({"max_queries": 2}, {"transform": {"multi_query": 3}}),
        ({"max_query_characters": 100}, {"queries": ["a" * 200]}),
        ({"max_expand_characters": 1000}, {"expand": {"neighbours": 1, "max_characters": 6000}}),
        ({"search_timeout_seconds": 5}, {"rerank": {"timeout_seconds": 9.0}}),
    ],
)
def test_a_default_above_a_limit_that_was_lowered_since_is_left_out(settings: Any, default: Any) -> None:
    plan = plan_search("q", Settings(**settings), {}, {"highlight": True, **default})
    assert left_out(plan) == list(default)
    assert plan.highlight


@pytest.mark.parametrize(
    "given", [{}, {"expand": {"parent": True}}, {"rerank": {}}, {"preset": "ultimate"}, {"preset": "economy"}]
)
def test_what_nobody_says_stays_below_the_limits(given: Any) -> None:
    settings = Settings(max_top_k=3, max_candidates=20, max_expand_characters=1000)
    plan = plan_search("q", settings, given, {})
    assert (plan.top_k, plan.candidates, plan.expand.max_characters) == (3, 20, 1000)
    kept = plan_search("q", settings, given, {"top_k": 50, "candidates": 500})
    assert (kept.top_k, kept.candidates, kept.notices) == (3, 20, ())


@pytest.mark.parametrize("given", [{"top_k": 80}, {"rerank": {"candidates": 80}}])
def test_a_presets_numbers_move_to_fit_those_of_the_request(given: Any) -> None:
    assert plan_search("q", SETTINGS, {"preset": "economy", **given}, {}).candidates == 80


def test_what_the_request_itself_has_wrong_is_told_and_nothing_else() -> None:
    with pytest.raises(InvalidRequest) as caught:
        plan_search("q", Settings(max_queries=1), {"min_score": 0.5}, {"queries": ["a"]})
    assert [(error.pointer, error.code) for error in caught.value.errors] == [("/min_score", "needs_score")]


def test_a_reranker_is_required_where_the_request_names_it_alone() -> None:
    def optional(given: Any, defaults: Any) -> bool:
        return plan_search("q", SETTINGS, given, defaults).is_rerank_optional

    assert optional({}, {"rerank": {"model": "http"}})
    assert optional({"preset": "ultimate"}, {})
    assert not optional({"preset": "ultimate", "rerank": {"model": "http"}}, {})


def test_a_request_without_a_preset_has_none() -> None:
    plan = plan_search("q", SETTINGS, {"preset": None}, {"preset": "ultimate", "top_k": 7})
    assert (plan.preset, plan.narrow_to_parents, plan.rerank, plan.top_k) == (None, None, None, 7)


REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(["dense", "keyword", "hybrid"]),
        "top_k": st.integers(1, 60),
        "candidates": st.none() | st.integers(1, 200),
        "fusion": st.none()
        | st.sampled_from([{"alpha": 0.0}, {"alpha": 1.0}, {"weights": {"keyword": 0.0}}, {"k": 60}]),
        "preset": st.none() | st.sampled_from(["economy", "power", "ultimate"]),
        "rerank": st.none()
        | st.fixed_dictionaries(
            {}, optional={"model": st.sampled_from(["lexical", "llm"]), "candidates": st.integers(1, 150)}
        ),
        "min_score": st.none() | st.floats(0, 1),
        "min_score_on": st.none() | st.sampled_from(["dense", "keyword"]),
        "narrow_to_parents": st.none() | st.integers(1, 9),
    },
)


def is_right(given: Any) -> bool:
    try:
        plan_search("q", SETTINGS, given, {})
    except InvalidRequest:
        return False
    return True


@each(given=REQUESTS.filter(is_right), defaults=REQUESTS.filter(is_right))
def test_no_defaults_make_a_right_request_wrong(given: Any, defaults: Any) -> None:
    plan = plan_search("q", SETTINGS, given, defaults)
    for name in ("mode", "top_k", "min_score", "min_score_on", "narrow_to_parents"):
        if name in given:
            assert getattr(plan, name) == given[name]
