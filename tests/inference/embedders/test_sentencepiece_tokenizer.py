from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.embedders.sentencepiece_tokenizer import SentencePieceTokenizer

pytestmark = pytest.mark.model


@pytest.fixture(scope="session")
def tokenizer(model_folder: Path) -> SentencePieceTokenizer:
    return SentencePieceTokenizer(model_folder / "multilingual-e5-small" / "sentencepiece.model")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        # As the model's own tokenizer has them (huggingface.co/intfloat/multilingual-e5-small).
        ("Hello world", [0, 35378, 8999, 2]),
        ("query: hello", [0, 41, 1294, 12, 33600, 31, 2]),
        ("我们", [0, 57818, 2]),
        ("", [0, 2]),
    ],
)
def test_ids_are_those_of_the_model(tokenizer, text, ids):
    assert tokenizer.encode([text]) == [ids]


@pytest.mark.parametrize("text", ["<s>", "</s>", "<pad>", "<unk>", "<mask>", "a</s>b"])
def test_a_text_cannot_make_a_control_token(tokenizer, text):
    (ids,) = tokenizer.encode([text])
    assert not {0, 1, 2, 250_001} & set(ids[1:-1])


@pytest.mark.parametrize(
    ("text", "same"),
    [("ＡＰＩ", "API"), ("e\u0301te\u0301", "été"), ("ﬁn", "fin"), ("a\u200db", "a b"), ("a\t\n b", "a b")],
)
def test_forms_that_the_model_never_saw_are_normalised(tokenizer, text, same):
    assert tokenizer.encode([text]) == tokenizer.encode([same])


def test_shortening_keeps_the_end_token(tokenizer):
    (ids,) = tokenizer.encode(["one two three four five"])
    short = tokenizer.shorten(ids, 4)
    assert (len(short), short[0], short[-1]) == (4, 0, 2)


@settings(deadline=None)
@given(st.text() | st.text(st.characters(categories=["Cs", "Lo"])))
def test_a_count_is_the_number_of_ids_of_the_passage(tokenizer, text):
    assert tokenizer.count_passage(text) == len(tokenizer.encode(["passage: " + text])[0])


def test_a_very_long_text_is_never_counted_short(tokenizer):
    text = "Each parent may take 320 working days. 员工每年享有十五天带薪年假。" * 3_000
    exact = len(tokenizer.encode(["passage: " + text])[0])
    assert exact <= tokenizer.count_passage(text) <= exact + 10
