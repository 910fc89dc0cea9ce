from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain import Document
from app.stores.sqlite import SqliteStore
from app.stores.texts import SEGMENT_CHARACTERS

LENGTH = 3 * SEGMENT_CHARACTERS + 17
TEXT = "".join(chr(0x4E00 + i % 5000) if i % 7 else "👩‍👩‍👧"[i % 5] for i in range(LENGTH))
# Near the ends of segments and of the text.
offsets = st.builds(
    lambda edge, near: max(0, edge + near),
    st.sampled_from([0, SEGMENT_CHARACTERS, 2 * SEGMENT_CHARACTERS, 3 * SEGMENT_CHARACTERS, LENGTH]),
    st.integers(-3, 3),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(offsets, st.none() | offsets)
def test_any_piece_of_a_long_text_is_that_slice(
    store: SqliteStore, put: Callable[..., Document], start: int, end: int | None
) -> None:
    if store.document("d") is None:
        put(store, "d", [TEXT])
    assert store.text("d", start, end) == TEXT[start:end]
