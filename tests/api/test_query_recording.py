"""Options are kept as far as they are small."""

import json

from hypothesis import given
from hypothesis import strategies as st

from app.api.query_recording import MOST_OPTION_CHARACTERS, OMITTED, small_options

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=50),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner, max_size=5),
)


@given(st.dictionaries(st.sampled_from("abcdefgh"), values | st.integers(0, 4000).map("x".__mul__)))
def test_options_are_kept_whole_or_left_out_by_name_within_their_bound(options: dict[str, object]) -> None:
    kept = small_options(options)
    assert list(kept) == list(options)
    whole = {name: value for name, value in kept.items() if value != OMITTED}
    assert sum(len(json.dumps(value, ensure_ascii=False)) for value in whole.values()) <= MOST_OPTION_CHARACTERS
    assert all(value == options[name] for name, value in whole.items())


def test_a_long_option_does_not_push_small_ones_out() -> None:
    options = {"document_ids": ["x" * 100] * 100, "top_k": 5, "mode": "dense"}
    assert small_options(options) == {"document_ids": OMITTED, "top_k": 5, "mode": "dense"}
