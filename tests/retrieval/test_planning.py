"""A plan is checked as a whole before any work, and names each wrong value where the caller wrote it."""

import pytest

from app.errors import InvalidRequest
from app.filters import And, Condition, Operator
from app.retrieval.plan import LegWeights, RankFusion, RelativeFusion, ScoreFusion, SearchPlan
from app.retrieval.planning import build_plan
from app.settings import Settings

SETTINGS = Settings(max_top_k=50, max_candidates=400, max_query_characters=100)


def wrong(query: str = "leave", **options) -> dict[str, str]:
    with pytest.raises(InvalidRequest) as caught:
        build_plan(query, SETTINGS, **options)
    return {error.pointer: error.detail for error in caught.value.errors}


def test_defaults_are_those_of_the_contract() -> None:
    plan = build_plan("  how many days  ", SETTINGS)
    assert plan == SearchPlan("how many days", "hybrid", 5, 100, RelativeFusion("auto"), None, None)
    assert plan.legs == ("dense", "keyword")


def test_candidates_follow_a_larger_top_k_unless_they_are_given() -> None:
    settings = Settings(max_top_k=300)
    assert build_plan("x", settings, top_k=250).candidates == 250
    assert wrong(top_k=20, candidates=10) == {"/candidates": "candidates 10 must be at least top_k 20"}


@pytest.mark.parametrize("query", ["", "   ", "\0", "\ud800", "\u3000\n"])
def test_a_query_without_text_is_refused(query: str) -> None:
    assert list(wrong(query)) == ["/query"]


def test_a_query_loses_what_no_model_can_read() -> None:
    assert build_plan("a\0b\ud83dc", SETTINGS).query == "a bc"


def test_every_wrong_value_is_named_at_once_with_its_limit() -> None:
    errors = wrong("x" * 101, top_k=51, candidates=401, fusion=RankFusion(k=-1, weights=LegWeights(0, 0)))
    assert set(errors) == {"/query", "/top_k", "/candidates", "/fusion/k", "/fusion/weights"}
    assert "50 (FOOTNOTE_MAX_TOP_K)" in errors["/top_k"]
    assert "400 (FOOTNOTE_MAX_CANDIDATES)" in errors["/candidates"]
    assert "100 (FOOTNOTE_MAX_QUERY_CHARACTERS)" in errors["/query"]


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan"), float("inf")])
def test_alpha_is_a_share(alpha: float) -> None:
    assert list(wrong(fusion=ScoreFusion(alpha))) == ["/fusion/alpha"]


@pytest.mark.parametrize("k", [-1.0, float("nan"), float("inf")])
def test_k_is_a_finite_number(k: float) -> None:
    assert list(wrong(fusion=RankFusion(k=k))) == ["/fusion/k"]


def test_pointers_follow_the_callers_body() -> None:
    with pytest.raises(InvalidRequest) as caught:
        build_plan("", SETTINGS, top_k=0, query_pointer="/question", options_pointer="/search")
    assert [error.pointer for error in caught.value.errors] == ["/question", "/search/top_k"]


def test_the_filter_of_a_key_narrows_whatever_is_asked() -> None:
    forced = Condition("team", Operator.EQ, "hr")
    asked = Condition("team", Operator.EQ, "law")
    assert build_plan("x", SETTINGS, forced_filter=forced, search_filter=asked).filter == And((forced, asked))
    assert build_plan("x", SETTINGS, forced_filter=forced).filter == forced
    assert build_plan("x", SETTINGS, search_filter=asked).filter == asked


def test_a_leg_of_weight_nothing_does_not_run() -> None:
    assert build_plan("x", SETTINGS, fusion=RankFusion(weights=LegWeights(1, 0))).legs == ("dense",)
    assert build_plan("x", SETTINGS, fusion=ScoreFusion(0.0)).legs == ("keyword",)
    assert build_plan("x", SETTINGS, fusion=ScoreFusion("auto")).legs == ("dense", "keyword")
    assert build_plan("x", SETTINGS, mode="keyword").legs == ("keyword",)
