from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.domain import Document
from app.filters import And, Condition, Filter, Not, Operator, Or
from app.settings import Settings
from app.stores import filter_rows
from app.stores.filters import parse_filter
from app.stores.sqlite import SqliteStore

Put = Callable[..., Document]
MISSING = object()


# --- the law: what SQL finds is what reading every document finds ---


def passes(wanted: Filter, metadata: dict[str, Any]) -> bool:
    """Say whether a document passes, by the grammar's words alone."""
    match wanted:
        case And(items):
            return all(passes(item, metadata) for item in items)
        case Or(items):
            return any(passes(item, metadata) for item in items)
        case Not(item):
            return not passes(item, metadata)
        case Condition(field, operator, value):
            return meets(value_at(metadata, field), operator, value)


def value_at(metadata: Any, field: str) -> Any:
    for name in field.split("."):
        if not isinstance(metadata, dict) or name not in metadata:
            return MISSING
        metadata = metadata[name]
    return MISSING if metadata is None or isinstance(metadata, dict) else metadata


def meets(stored: Any, operator: Operator, value: Any) -> bool:
    if operator is Operator.EXISTS:
        return (stored is not MISSING) is value
    if stored is MISSING:
        return False
    values = value if isinstance(value, list) else [value]
    match operator:
        case Operator.EQ:
            return equal(stored, value)
        case Operator.NE:
            return same_type(stored, value) and not equal(stored, value)
        case Operator.IN:
            return is_one_of(stored, values)
        case Operator.NIN:
            return (not values or any(same_type(stored, one) for one in values)) and not is_one_of(stored, values)
        case Operator.PREFIX:
            return isinstance(stored, str) and stored.startswith(value)
        case Operator.CONTAINS | Operator.CONTAINS_ANY:
            return isinstance(stored, list) and any(is_one_of(one, stored) for one in values)
        case Operator.CONTAINS_ALL:
            return isinstance(stored, list) and all(is_one_of(one, stored) for one in values)
    return ordered(stored, operator, value)


def is_one_of(value: Any, values: list[Any]) -> bool:
    return any(equal(value, one) for one in values)


def ordered(stored: Any, operator: Operator, value: Any) -> bool:
    if not same_type(stored, value) or isinstance(stored, list | bool):
        return False
    if isinstance(value, str) and as_date(value) is not None:
        stored, value = as_date(stored), as_date(value)
        if stored is None:
            return False
    compared = {
        Operator.GT: stored > value,
        Operator.GTE: stored >= value,
        Operator.LT: stored < value,
        Operator.LTE: stored <= value,
    }
    return bool(compared[operator])


def same_type(one: Any, other: Any) -> bool:
    return type_of(one) == type_of(other)


def type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else "list"


def equal(one: Any, other: Any) -> bool:
    if type_of(one) != type_of(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


def as_date(text: str) -> datetime | None:
    for pattern in ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S.%f%z"):
        try:
            parsed = datetime.strptime(text, pattern)
        except ValueError:
            continue
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return None


dates = st.one_of(
    st.dates(min_value=datetime(2023, 1, 1).date(), max_value=datetime(2023, 1, 4).date()).map(str),
    st.builds(
        lambda hours, offset, zone: (
            (datetime(2023, 1, 2, tzinfo=UTC) + timedelta(hours=hours, milliseconds=offset))
            .astimezone(zone)
            .isoformat()
        ),
        st.integers(-3, 3),
        st.sampled_from([0, 0, 250]),
        st.sampled_from([UTC, datetime.strptime("+0300", "%z").tzinfo, datetime.strptime("-0130", "%z").tzinfo]),
    ),
)
texts = st.one_of(
    st.sampled_from(["", "a", "ab", "abc", "b", "'", '"', "%", "_", "1", "true", "猫", "\U0010ffff", "a\U0010ffffb"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=3),
    dates,
)
numbers = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([0.0, -0.0, 1.0, 0.1, 1e-9, 2.5, 2**53, 2**53 + 1, 2.0**53, 2**63 - 1, -(2**63), 1e300]),
    st.floats(allow_nan=False, allow_infinity=False),
)
scalars = st.one_of(texts, numbers, st.booleans())
FIELDS = ["a", "a", "b", "b", "tags", "o.x", "o.p.y", "absent"]
ORDER = [Operator.GT, Operator.GTE, Operator.LT, Operator.LTE]
OF_LISTS = [Operator.IN, Operator.NIN, Operator.CONTAINS_ANY, Operator.CONTAINS_ALL]


@st.composite
def documents_and_filters(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[Filter]]:
    """Draw both from a few values, so that they meet."""
    vocabulary = draw(st.lists(scalars, min_size=1, max_size=6))
    # An integer and its float are one number, of two types in Python.
    vocabulary += [float(value) for value in vocabulary if type(value) is int and abs(value) < 2**53]
    value = st.sampled_from(vocabulary)
    text = st.sampled_from([one for one in vocabulary if isinstance(one, str)] or [""])
    ordered_value = st.sampled_from([one for one in vocabulary if not isinstance(one, bool)] or [0])
    values = st.lists(value, max_size=3)
    either = st.one_of(value, values)
    metadata = st.fixed_dictionaries(
        {},
        optional={
            "a": st.one_of(value, value, values, st.none()),
            "b": value,
            "tags": values,
            "o": st.fixed_dictionaries(
                {}, optional={"x": either, "p": st.fixed_dictionaries({}, optional={"y": value})}
            ),
        },
    )
    field = st.sampled_from(FIELDS)
    condition = st.one_of(
        st.builds(Condition, field, st.sampled_from([Operator.EQ, Operator.NE]), either),
        st.builds(Condition, field, st.sampled_from(ORDER), ordered_value),
        st.builds(Condition, field, st.sampled_from(OF_LISTS), values),
        st.builds(Condition, field, st.just(Operator.CONTAINS), value),
        st.builds(Condition, field, st.just(Operator.PREFIX), st.builds(lambda t, n: t[:n], text, st.integers(0, 3))),
        st.builds(Condition, field, st.just(Operator.EXISTS), st.booleans()),
    )
    several = st.lists(condition, max_size=3).map(tuple)
    combination = st.one_of(
        st.builds(And, several),
        st.builds(Or, several),
        st.builds(Not, condition),
        st.builds(Not, st.builds(Or, several)),
    )
    documents = draw(st.lists(metadata, min_size=4, max_size=6))
    return documents, draw(st.lists(st.one_of(condition, combination), min_size=12, max_size=20))


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    opened = SqliteStore(tmp_path_factory.mktemp("law"), Settings())
    yield opened
    opened.close()


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents_and_filters())
@example(([{"a": "a\U0010ffffb"}], [Condition("a", Operator.PREFIX, "a")]))
@example(([{"a": 2**53 + 1}], [Condition("a", Operator.EQ, 2.0**53), Condition("a", Operator.GT, 2.0**53)]))
def test_a_filtered_search_sees_what_reading_every_document_finds(
    shared_store: SqliteStore, drawn: tuple[list[dict[str, Any]], list[Filter]]
) -> None:
    documents, wanted = drawn
    for number, metadata in enumerate(documents):
        shared_store.register_document(f"d{number}", title="", metadata=metadata, media_type="", filename=None)
    rest = {"source_type": "", "created_at": datetime.now(UTC), "updated_at": datetime.now(UTC)}
    for each in wanted:
        found = shared_store.list_documents(each, limit=100, cursor=None).data
        expected = [f"d{number}" for number, metadata in enumerate(documents) if passes(each, metadata)]
        assert [document.id for document in found] == expected, each
        for number, metadata in enumerate(documents):
            name = f"d{number}"
            assert filter_rows.passes(each, metadata, document_id=name, **rest) == (name in expected), each
    shared_store.delete_documents([f"d{number}" for number in range(len(documents))])


# --- the cases ---


def ids(store: SqliteStore, raw: Any) -> list[str]:
    found = store.list_documents(parse_filter(raw), limit=200, cursor=None).data
    return [document.id for document in found]


def codes(store: SqliteStore, raw: Any) -> list[tuple[str, str]]:
    warnings = store.scope(parse_filter(raw), None).warnings
    return [(warning.code, warning.extra["field"]) for warning in warnings]


def test_a_list_contains_its_elements_and_equals_only_the_whole(store: SqliteStore, put: Put) -> None:
    put(store, "d", ["x "], {"tags": ["a", "b"]})
    for op, value in [
        ("contains", "a"),
        ("contains_any", ["b", "z"]),
        ("contains_all", ["a", "b"]),
        ("eq", ["a", "b"]),
    ]:
        assert ids(store, {"field": "tags", "op": op, "value": value}) == ["d"], op
    for op, value in [("eq", "a"), ("eq", ["b", "a"]), ("contains_all", ["a", "z"]), ("in", ["a"]), ("prefix", "a")]:
        assert ids(store, {"field": "tags", "op": op, "value": value}) == [], op


def test_a_missing_field_matches_only_not_and_exists_false(store: SqliteStore, put: Put) -> None:
    put(store, "without")
    put(store, "null", ["x "], {"year": None})
    put(store, "other", ["x "], {"year": 2021})
    year = {"field": "year", "op": "eq", "value": 2020}
    assert ids(store, year | {"op": "ne"}) == ["other"]
    assert ids(store, year | {"op": "nin", "value": [2020]}) == ["other"]
    assert ids(store, {"not": year}) == ["without", "null", "other"]
    assert ids(store, {"field": "year", "op": "exists", "value": False}) == ["without", "null"]


def test_another_type_is_no_match_and_a_warning(store: SqliteStore, put: Put) -> None:
    put(store, "number", ["x "], {"year": 2020, "tags": ["a"], "when": "2020-01-01", "team": "hr"})
    for op, value in [("eq", "2020"), ("ne", "2020"), ("gt", "2019"), ("in", ["2020"]), ("eq", True), ("prefix", "2")]:
        assert ids(store, {"field": "year", "op": op, "value": value}) == []
        assert codes(store, {"field": "year", "op": op, "value": value}) == [("type_mismatch", "year")], op
    assert codes(store, {"field": "tags", "op": "eq", "value": "a"}) == [("type_mismatch", "tags")]
    assert codes(store, {"field": "tags", "op": "contains", "value": 1}) == [("type_mismatch", "tags")]
    assert codes(store, {"field": "team", "op": "gt", "value": "2020-01-01"}) == [("type_mismatch", "team")]
    assert codes(store, {"field": "team", "op": "contains", "value": "hr"}) == [("type_mismatch", "team")]
    for field, op, value in [("year", "lt", 2021.5), ("tags", "contains", "z"), ("when", "gt", "2019-12-31T23:00:00Z")]:
        assert codes(store, {"field": field, "op": op, "value": value}) == []
    assert codes(store, {"field": "when", "op": "eq", "value": "text"}) == []


def test_a_field_that_no_document_has_is_a_warning_once(store: SqliteStore, put: Put) -> None:
    put(store, "d", ["x "], {"team": "hr", "author": {"name": "Ada"}})
    unknown = {"field": "taem", "op": "eq", "value": "hr"}
    assert codes(store, {"or": [unknown, {"not": unknown}]}) == [("unknown_metadata_field", "taem")]
    assert codes(store, {"field": "author.name", "op": "eq", "value": "Ada"}) == []
    assert codes(store, {"field": "$document_id", "op": "eq", "value": "nobody"}) == []


def test_dates_compare_as_moments_and_equal_as_text(store: SqliteStore, put: Put) -> None:
    put(store, "day", ["x "], {"when": "2023-12-27"})
    put(store, "noon", ["x "], {"when": "2023-12-27T12:00:00Z"})
    put(store, "east", ["x "], {"when": "2023-12-28T00:30:00+08:00"})
    put(store, "words", ["x "], {"when": "last winter"})
    put(store, "not a day", ["x "], {"when": "2023-02-30"})
    assert ids(store, {"field": "when", "op": "gt", "value": "2023-12-27"}) == ["noon", "east"]
    assert ids(store, {"field": "when", "op": "lte", "value": "2023-12-27T12:00:00.000Z"}) == ["day", "noon"]
    assert ids(store, {"field": "when", "op": "eq", "value": "2023-12-27"}) == ["day"]
    assert ids(store, {"field": "when", "op": "prefix", "value": "2023-"}) == ["day", "noon", "east", "not a day"]
    assert ids(store, {"field": "when", "op": "gt", "value": "2023-12-27 x"}) == ["noon", "east", "words"]


def test_the_fields_of_the_service_are_always_there(store: SqliteStore, put: Put) -> None:
    before = datetime.now(UTC)
    put(store, "a", ["x "], {"$document_id": "b", "$foo": 1})
    put(store, "b")
    assert ids(store, {"field": "$document_id", "op": "in", "value": ["a", "z"]}) == ["a"]
    assert ids(store, {"field": "$source_type", "op": "eq", "value": "text"}) == ["a", "b"]
    for field in ("$created_at", "$updated_at"):
        assert ids(store, {"field": field, "op": "gte", "value": before.isoformat()}) == ["a", "b"]
        assert ids(store, {"field": field, "op": "lt", "value": before.isoformat()}) == []
    created = store.document("a")
    assert created is not None
    told = created.created_at.isoformat().replace("+00:00", "Z")
    assert ids(store, {"field": "$created_at", "op": "eq", "value": told}) == ["a"]


def test_a_scope_holds_ready_documents_of_the_filter_and_the_list(store: SqliteStore, put: Put, prepare: Any) -> None:
    keys = {name: put(store, name, ["x "], {"lang": "fi"}).key for name in ("a", "b", "c")}
    prepare(store, "pending", ["x "], {"lang": "fi"})
    finnish = parse_filter({"field": "lang", "op": "eq", "value": "fi"})
    assert store.scope(finnish, None).document_keys.tolist() == [keys["a"], keys["b"], keys["c"]]
    assert store.scope(None, ["c", "pending", "a", "a"]).document_keys.tolist() == [keys["a"], keys["c"]]
    assert store.scope(finnish, ["b"]).document_keys.tolist() == [keys["b"]]
    assert store.scope(finnish, []).is_empty
    assert store.scope(None, None).document_keys is None
    assert store.scope(And(()), None).document_keys.tolist() == list(keys.values())
    assert store.scope(Not(Or(())), None).document_keys.tolist() == list(keys.values())


def test_a_scope_is_never_older_than_the_last_change(store: SqliteStore, put: Put) -> None:
    finnish = parse_filter({"field": "lang", "op": "eq", "value": "fi"})
    assert store.scope(finnish, None).is_empty
    put(store, "a", ["x "], {"lang": "fi"})
    assert len(store.scope(finnish, None).document_keys) == 1
    store.update_document("a", etag="", title="", metadata={"lang": "sv"}, expires_at=None)
    assert store.scope(finnish, None).is_empty
    store.update_document("a", etag="", title="", metadata={"lang": "fi"}, expires_at=None)
    store.delete_documents(["a"])
    assert store.scope(finnish, None).is_empty


def test_one_and_true_are_different_filters_for_the_cache_too(store: SqliteStore, put: Put) -> None:
    put(store, "one", ["x "], {"flag": 1})
    assert len(store.scope(Condition("flag", Operator.EQ, 1), None).document_keys) == 1
    assert store.scope(Condition("flag", Operator.EQ, True), None).is_empty


def test_five_thousand_values_and_a_filter_of_the_greatest_depth_and_width_work(store: SqliteStore, put: Put) -> None:
    put(store, "d", ["x "], {"n": 4999})
    many = {"field": "n", "op": "in", "value": list(range(5000))}
    assert ids(store, many) == ["d"]
    assert ids(store, many | {"op": "nin"}) == []
    deep: Any = {"and": [many] * 100}
    for _ in range(31):
        deep = {"not": deep}
    assert ids(store, deep) == []
    assert ids(store, deep["not"]) == ["d"]


@pytest.mark.parametrize(
    "text", ["'; DROP TABLE documents; --", '"', "a\x00b", "\ud800", "%", "[1]", '{"a":1}', "NaN", "x" * 100_000]
)
def test_no_text_of_a_caller_is_read_as_sql_or_json(store: SqliteStore, put: Put, text: str) -> None:
    put(store, "d", ["x "], {"a": text, "list": [text], text: "v"})
    assert ids(store, {"field": "a", "op": "eq", "value": text}) == ["d"]
    assert ids(store, {"field": "a", "op": "in", "value": [text, "z"]}) == ["d"]
    assert ids(store, {"field": "list", "op": "contains", "value": text}) == ["d"]
    assert ids(store, {"field": "a", "op": "prefix", "value": text[:1]}) == ["d"]
    assert ids(store, {"field": text, "op": "eq", "value": "w"}) == []
    assert store.verify() == []


def test_numbers_beyond_the_engine_compare_as_their_nearest(store: SqliteStore, put: Put) -> None:
    put(store, "huge", ["x "], {"n": 10**400, "m": 2**63, "nan": float("nan")})
    assert ids(store, {"field": "n", "op": "gt", "value": 1e308}) == ["huge"]
    assert ids(store, {"field": "n", "op": "in", "value": [10**500]}) == ["huge"]
    assert ids(store, {"field": "m", "op": "eq", "value": 2**63}) == ["huge"]
    assert ids(store, {"field": "nan", "op": "exists", "value": True}) == []
