import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.embedders.hashed import DIMENSIONS, HashedEmbedder


def cosine(one: str, other: str) -> float:
    first, second = HashedEmbedder().embed_passages([one, other])
    return float(first @ second)


def test_texts_that_share_words_are_nearer_than_texts_that_do_not():
    assert cosine("parental leave policy", "the leave policy for parents") > cosine(
        "parental leave policy", "a red car"
    )


def test_case_and_width_do_not_matter():
    assert cosine("ＡＰＩ Key", "api KEY") == pytest.approx(1)


@pytest.mark.parametrize("query", ["部署", "方案"])
def test_a_chinese_word_is_found_inside_a_sentence(query):
    assert cosine(query, "今天讨论了部署方案") > cosine(query, "每年享有带薪年假") + 0.2


def test_vectors_are_the_same_on_every_machine_and_run():
    vector = HashedEmbedder().embed_passages(["footnote"])[0]
    assert np.flatnonzero(vector).tolist() == [198]
    assert vector[198] == 1


@given(st.text())
def test_every_text_has_a_unit_vector(text):
    vectors = HashedEmbedder().embed_queries([text])
    assert vectors.shape == (1, DIMENSIONS)
    assert np.linalg.norm(vectors[0]) == pytest.approx(1, abs=1e-5)


def test_texts_without_a_word_share_one_vector():
    assert cosine("!!!", "") == pytest.approx(1)
