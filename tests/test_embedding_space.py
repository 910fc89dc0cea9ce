import math

import pytest

from app.embedding_space import EmbeddingSpace, same_space

UNIT = (0.6, 0.8)


def space(**changes) -> EmbeddingSpace:
    return EmbeddingSpace(**{"provider": "local", "model": "m", "dimensions": 2, "fingerprint": UNIT} | changes)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (space(), True),
        (space(provider="openai_compatible"), True),
        (space(fingerprint=()), True),
        (space(fingerprint=(0.64, math.sqrt(1 - 0.64**2))), True),
        (space(fingerprint=(0.8, 0.6)), False),
        (space(fingerprint=(-0.6, -0.8)), False),
        (space(model="n"), False),
        (space(dimensions=3, fingerprint=(0.6, 0.8, 0.0)), False),
    ],
)
def test_spaces_are_the_same_by_model_dimensions_and_fingerprint(other, same):
    assert same_space(space(), other) is same
    assert same_space(other, space()) is same
