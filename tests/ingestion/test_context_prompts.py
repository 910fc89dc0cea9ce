from hypothesis import given
from hypothesis import strategies as st

from app.domain import Chunk
from app.inference.token_counter import estimate_tokens
from app.ingestion.context_prompts import document_windows

SENTENCE = "The committee of the northern district met again in spring. "


def cut(text: str, size: int) -> list[Chunk]:
    return [
        Chunk(i, start, start + len(text[start : start + size]), text[start : start + size], 1)
        for i, start in enumerate(range(0, len(text), size))
    ]


def test_every_chunk_of_a_document_that_fits_is_asked_for_after_the_same_bytes() -> None:
    text = SENTENCE * 20
    chunks = cut(text, 100)
    windows = document_windows(text, "Minutes", chunks, context_tokens=8192, answer_tokens=100)
    assert windows is not None
    prompts = [windows.prompt(windows.window_of(chunk), chunk) for chunk in chunks]
    assert len({prompt[0].content for prompt in prompts}) == 1
    assert text in prompts[0][0].content
    assert "Minutes" in prompts[0][0].content
    for chunk, (system, user) in zip(chunks, prompts, strict=True):
        assert (system.role, user.role) == ("system", "user")
        assert chunk.text in user.content


def test_a_chunk_of_a_longer_document_is_asked_for_with_what_stands_around_it() -> None:
    text = "".join(f"Section {i}. {SENTENCE}" for i in range(1000))
    chunks = cut(text, 300)
    windows = document_windows(text, "Minutes", chunks, context_tokens=2048, answer_tokens=100)
    assert windows is not None
    places = [windows.window_of(chunk) for chunk in chunks]
    assert places == sorted(places)
    assert set(places) == set(range(len(windows.prefixes)))
    for place, chunk in zip(places, chunks, strict=True):
        system, user = windows.prompt(place, chunk)
        assert chunk.text.strip() in system.content
        assert estimate_tokens(system.content) + estimate_tokens(user.content) + 100 <= 2048


def test_a_model_that_could_read_next_to_nothing_is_not_asked() -> None:
    chunks = cut(SENTENCE * 100, 1200)
    assert document_windows(SENTENCE * 100, "", chunks, context_tokens=512, answer_tokens=100) is None


@given(st.text(alphabet="a 猫é👩\n.", min_size=1, max_size=6000), st.integers(800, 1600))
def test_no_prompt_exceeds_the_models_window(text: str, context_tokens: int) -> None:
    chunks = cut(text, 50)
    windows = document_windows(text, "t", chunks, context_tokens=context_tokens, answer_tokens=50)
    if windows is not None:
        for chunk in chunks:
            prompt = windows.prompt(windows.window_of(chunk), chunk)
            assert sum(estimate_tokens(message.content) for message in prompt) + 50 <= context_tokens
