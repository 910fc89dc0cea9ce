from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.filters import Condition, Not, Operator, Or
from app.retrieval.plan import SearchPlan
from app.retrieval.query_syntax import MOST_CONDITIONS, TypedQuery, parse, quoted_phrases, read_query

SIGNS = st.text(alphabet='ab -":“”„«»＂$.\\()*~^[]{}!+&|/日本\n', max_size=60)


def simple(query: str) -> TypedQuery:
    return parse(query, with_fields=False)


def advanced(query: str) -> TypedQuery:
    return parse(query, with_fields=True)


def test_phrases_are_required_and_what_follows_a_minus_is_excluded():
    typed = simple('annual "parental leave" -sick -"unpaid leave" e-mail')
    assert typed == TypedQuery("annual parental leave e-mail", ("parental leave",), ("sick", "unpaid leave"))


@pytest.mark.parametrize("query", ["“北京 大学” 招生", "„北京 大学“ 招生", "«北京 大学» 招生", '招生"北京 大学"'])
def test_other_quotation_marks_do_the_same_and_need_no_space_around(query):
    assert simple(query).required == ("北京 大学",)


@pytest.mark.parametrize(
    "query", ["-", "- word", "a - b", "--word", "e-mail x-ray", "word-", 'half a "phrase', '""', '" "']
)
def test_what_is_no_condition_is_text(query):
    typed = simple(query)
    assert (typed.required, typed.excluded, typed.filter) == ((), (), None)


@pytest.mark.parametrize(
    "query", ["col:", ":val", "a:b:c", "http://example.com", "12:30", "a :b", "$owner:me", "::", "a:/b"]
)
def test_a_colon_that_names_no_value_is_text(query):
    typed = advanced(query)
    assert (typed.text, typed.filter) == (query, None)


def test_a_field_is_text_unless_the_syntax_is_advanced():
    assert simple("team:hr leave").text == "team:hr leave"
    typed = advanced('leave team:hr -state:"on hold" year:2026')
    assert typed.text == "leave"
    assert typed.fields == {"team", "state", "year"}
    assert typed.filter is not None
    team, state, year = typed.filter.items
    assert Condition("team", Operator.EQ, "hr") in team.items
    assert Condition("team", Operator.CONTAINS, "hr") in team.items
    assert isinstance(state, Not)
    assert Condition("state", Operator.EQ, "on hold") in state.item.items
    assert Condition("year", Operator.EQ, 2026) in year.items


def test_a_field_of_the_service_is_compared_alone():
    typed = advanced("leave $document_id:a1")
    assert typed.filter.items == (Or((Condition("$document_id", Operator.EQ, "a1"),)),)


def test_a_query_of_conditions_alone_still_has_text():
    assert advanced("team:hr -sick").text == "hr sick"


@given(st.text(max_size=100) | SIGNS)
def test_any_text_can_be_read_in_any_syntax(query):
    for typed in (simple(query), advanced(query)):
        assert typed.text or not query
        assert all(phrase.strip() for phrase in (*typed.required, *typed.excluded))
    assert all(phrase in query for phrase in quoted_phrases(query))


def test_without_a_syntax_nothing_of_the_query_is_taken_away():
    plan = SearchPlan('-a "b c" d:e')
    assert read_query(plan) == (plan, TypedQuery('-a "b c" d:e'))


def test_fields_narrow_the_plans_own_filter():
    own = Condition("team", Operator.EQ, "hr")
    plan, typed = read_query(SearchPlan("leave year:2026", filter=own, query_syntax="advanced"))
    assert plan.query == "leave"
    assert plan.filter.items == (own, typed.filter)


def test_a_query_of_too_many_conditions_says_which_were_read(shelf: Any) -> None:
    shelf.put("a", "leave rule", "another rule")
    exclusions = [f"-word{number}" for number in range(MOST_CONDITIONS)]
    asked = {"mode": "keyword", "query_syntax": "simple"}
    assert shelf.search(" ".join(["leave", *exclusions]), **asked).warnings == ()
    result = shelf.search(" ".join(["leave", *exclusions, "-rule"]), **asked)
    assert [(each.code, dict(each.extra)) for each in result.warnings] == [
        ("conditions_cut", {"limit": MOST_CONDITIONS, "unread": 1})
    ]
    assert len(result.passages) == 2


def test_a_query_that_only_excludes_says_why_keywords_find_nothing(shelf: Any) -> None:
    shelf.put("a", "leave rule")
    shelf.put("b", "another rule")
    alone = shelf.search("-leave", query_syntax="simple", mode="keyword")
    assert (alone.passages, [warning.code for warning in alone.warnings]) == ((), ["no_query_terms"])
    by_meaning = shelf.search("-leave", query_syntax="simple")
    assert ([passage.document_id for passage in by_meaning.passages], by_meaning.warnings) == (["b"], ())
    assert shelf.search("rule -leave", query_syntax="simple", mode="keyword").warnings == ()
