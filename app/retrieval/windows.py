"""Cut a text that is too long for a model into windows that overlap, so that nothing of it is left unread."""

from collections.abc import Callable

from semantic_text_splitter import TextSplitter

OVERLAP = 0.2
"""The share of a window that stands in the one before too, so that what a cut tears apart stands whole in one."""


def cut_windows(text: str, most_tokens: int, count_tokens: Callable[[str], int]) -> list[str]:
    """Return the text whole where it fits, else windows of it, cut between sentences or, at worst, words."""
    if count_tokens(text) <= most_tokens or most_tokens < 2:
        return [text]
    splitter = TextSplitter.from_callback(count_tokens, most_tokens, overlap=int(most_tokens * OVERLAP))
    windows: list[str] = []
    for window in splitter.chunks(text):
        # The splitter halves its way to a cut, and may go a token too far where a longer text has fewer of them.
        fits = count_tokens(window) <= most_tokens
        windows += [window] if fits else cut_windows(window, most_tokens - 1, count_tokens)
    return windows or [text]
