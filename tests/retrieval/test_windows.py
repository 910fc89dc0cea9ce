import hashlib
import itertools

from hypothesis import given
from hypothesis import strategies as st

from app.inference.token_counter import estimate_tokens
from app.retrieval.windows import cut_windows

SENTENCES = [
    "The council met on Tuesday. ",
    "员工病假超过三天需要提供医院证明。",
    "supercalifragilistic ",
    "no spaces",
    "\n\n",
    "ok ",
]


def numbered(sentences: list[str]) -> str:
    """Return the sentences as one text in which no place looks like another."""
    digests = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(len(sentences))]
    pairs = zip(sentences, digests, strict=True)
    return "".join(digest[:50] if sentence == "no spaces" else digest[:6] + sentence for sentence, digest in pairs)


def words(text: str) -> int:
    return len(text.split())


def test_a_text_that_fits_is_left_whole():
    assert cut_windows("a b  c ", 3, words) == ["a b  c "]


def test_windows_overlap_so_that_each_pair_of_sentences_may_stand_in_one():
    text = " ".join(f"Sentence number {number} stands here." for number in range(60))
    windows = cut_windows(text, 50, words)
    assert len(windows) > 5
    for before, after in itertools.pairwise(windows):
        assert before.rsplit(". ", 1)[-1] in after


@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=60).map(numbered), st.integers(20, 200))
def test_every_word_is_in_a_window_and_no_window_is_too_long(text: str, most: int):
    windows = cut_windows(text, most, estimate_tokens)
    assert all(estimate_tokens(window) <= most for window in windows) or windows == [text]
    start, end = -1, 0
    for window in windows:
        start = text.find(window, start + 1)
        while start != -1 and start + len(window) <= end:
            start = text.find(window, start + 1)
        assert start != -1
        assert not text[end:start].strip()
        end = start + len(window)
    assert not text[end:].strip()
