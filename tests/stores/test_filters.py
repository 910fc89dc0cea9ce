from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvalidRequest, UnknownField
from app.filters import And, Condition, Not, Operator, Or
from app.stores.filters import parse_filter

YEAR = {"field": "year", "op": "gte", "value": 2020}


def test_the_four_shapes_become_filters() -> None:
    year = Condition("year", Operator.GTE, 2020)
    tags = Condition("tags", Operator.CONTAINS_ANY, ("a", 1, True))
    raw = {"and": [YEAR, {"or": [{"field": "tags", "op": "contains_any", "value": ["a", 1, True]}]}, {"not": YEAR}]}
    assert parse_filter(raw) == And((year, Or((tags,)), Not(year)))
    assert parse_filter({"and": []}) == And(())


@pytest.mark.parametrize(
    ("raw", "pointer", "hint"),
    [
        ({"field": "a", "op": "eq", "valu": 1}, "/filter/valu", "value"),
        ({"and": [YEAR, {"fields": "a"}]}, "/filter/and/1/fields", "field"),
        ({"ands": []}, "/filter/ands", "and"),
        ({"not": {"or": [{"field": "a", "op": "equals", "value": 1}]}}, "/filter/not/or/0/op", None),
        ({"field": "a", "op": "contain", "value": 1}, "/filter/op", "contains"),
        ({"field": "$created", "op": "eq", "value": "x"}, "/filter/field", "$created_at"),
        ({"a/b~c": 1}, "/filter/a~1b~0c", None),
    ],
)
def test_a_name_that_does_not_exist_is_told_with_the_nearest_one(raw: Any, pointer: str, hint: str | None) -> None:
    with pytest.raises(UnknownField) as refused:
        parse_filter(raw)
    assert refused.value.errors[0].pointer == pointer
    assert hint is None or f"`{hint}`" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (None, "/filter"),
        ([], "/filter"),
        ("year > 3", "/filter"),
        ({}, "/filter/field"),
        ({"field": "a", "op": "eq"}, "/filter/value"),
        ({"field": "a", "value": 1}, "/filter/op"),
        ({"and": [YEAR], "or": [YEAR]}, "/filter"),
        ({"and": [YEAR], "field": "a"}, "/filter"),
        ({"and": YEAR}, "/filter/and"),
        ({"and": "abc"}, "/filter/and"),
        ({"not": [YEAR]}, "/filter/not"),
        ({"or": [YEAR, 5]}, "/filter/or/1"),
        ({"field": 3, "op": "eq", "value": 1}, "/filter/field"),
        ({"field": "", "op": "eq", "value": 1}, "/filter/field"),
        ({"field": "a", "op": 3, "value": 1}, "/filter/op"),
        ({"field": "a", "op": ["eq"], "value": 1}, "/filter/op"),
    ],
)
def test_a_wrong_shape_is_told_with_its_place(raw: Any, pointer: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_filter(raw)
    assert [error.pointer for error in refused.value.errors] == [pointer]


@pytest.mark.parametrize(
    ("op", "value", "place"),
    [
        ("eq", None, ""),
        ("eq", {"a": 1}, ""),
        ("eq", ["a", ["b"]], "/1"),
        ("ne", float("nan"), ""),
        ("gt", True, ""),
        ("gte", None, ""),
        ("lt", ["a"], ""),
        ("lte", float("inf"), ""),
        ("in", "abc", ""),
        ("in", [1, None], "/1"),
        ("nin", 5, ""),
        ("exists", 1, ""),
        ("exists", "true", ""),
        ("contains", ["a"], ""),
        ("contains_any", "a", ""),
        ("contains_all", [["a"]], "/0"),
        ("prefix", 20, ""),
    ],
)
def test_each_operator_checks_its_value(op: str, value: Any, place: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_filter({"and": [{"field": "a", "op": op, "value": value}]}, pointer="/search/filter")
    assert refused.value.errors[0].pointer == f"/search/filter/and/0/value{place}"
    assert op in refused.value.errors[0].detail


def test_thirty_two_levels_are_allowed_and_one_more_is_refused_at_its_place() -> None:
    deep: Any = YEAR
    for _ in range(32):
        deep = {"not": deep}
    parse_filter(deep)
    with pytest.raises(InvalidRequest) as refused:
        parse_filter({"and": [deep]})
    assert refused.value.errors[0].pointer == "/filter/and/0" + "/not" * 31
    assert refused.value.errors[0].code == "too_deep"


def test_more_conditions_than_a_search_can_answer_in_time_are_refused() -> None:
    parse_filter({"or": [YEAR] * 2000})
    with pytest.raises(InvalidRequest) as refused:
        parse_filter({"or": [{"and": [YEAR] * 2000}, YEAR]})
    assert refused.value.errors[0].code == "too_many_conditions"


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["and", "or", "not", "field", "op", "value", "eq", "x"]) | st.text(), inner, max_size=3
        ),
    ),
    max_leaves=10,
)


@given(json_values)
def test_any_json_is_a_filter_or_a_422_that_can_be_sent(raw: Any) -> None:
    try:
        parse_filter(raw)
    except InvalidRequest as error:
        for field in error.errors:
            field.pointer.encode()
            field.detail.encode()
