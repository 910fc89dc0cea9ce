"""Convert the packed weights into files that onnxruntime and SentencePiece read; runs in a process of its own.

`python -m app.inference.embedders.e5_conversion WEIGHTS FOLDER` writes the model's files into an existing folder.
"""

import sys
from pathlib import Path
from typing import Any

import onnx
import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as _untyped_protocol

from app.inference.embedders.e5_calibration import activation_spread
from app.inference.embedders.e5_files import GRAPH, TOKENIZER
from app.inference.embedders.e5_graph import int8_model
from app.inference.embedders.e5_weights import PackedWeights, Vocabulary
from app.inference.embedders.sentencepiece_tokenizer import SentencePieceTokenizer

_GRAPH_WEIGHTS = "model.onnx.data"
_LARGEST_INLINE_BYTES = 1024

_protocol: Any = _untyped_protocol


def convert(weights_path: Path, folder: Path) -> None:
    """Write graph, weights and tokenizer into the folder; equal input gives equal bytes on one machine."""
    weights = PackedWeights(weights_path)
    (folder / TOKENIZER).write_bytes(tokenizer_model(weights.vocabulary))
    spread = activation_spread(weights, SentencePieceTokenizer(folder / TOKENIZER))
    # Weights in a file of their own are mapped, not copied: 70 MB less memory, shared by server processes.
    onnx.save(
        int8_model(weights, spread),
        folder / GRAPH,
        save_as_external_data=True,
        location=_GRAPH_WEIGHTS,
        size_threshold=_LARGEST_INLINE_BYTES,
    )


def tokenizer_model(vocabulary: Vocabulary) -> bytes:
    """Return the vocabulary as a SentencePiece model with the normalisation that it was trained with."""
    normaliser = sentencepiece.SentencePieceNormalizer(
        rule_name="nmt_nfkc", add_dummy_prefix=True, escape_whitespaces=True, remove_extra_whitespaces=True
    )
    model = _protocol.ModelProto.FromString(normaliser.serialized_model_proto())
    kinds = _protocol.ModelProto.SentencePiece
    special = dict.fromkeys([vocabulary.begin, vocabulary.end, vocabulary.padding, vocabulary.mask], kinds.CONTROL)
    special[vocabulary.unknown] = kinds.UNKNOWN
    for index, (piece, score) in enumerate(zip(vocabulary.pieces, vocabulary.scores, strict=True)):
        model.pieces.add(piece=piece, score=score, type=special.get(index))
    trainer = model.trainer_spec
    trainer.model_type = _protocol.TrainerSpec.UNIGRAM
    trainer.vocab_size = len(vocabulary.pieces)
    trainer.bos_id, trainer.eos_id = vocabulary.begin, vocabulary.end
    trainer.pad_id, trainer.unk_id = vocabulary.padding, vocabulary.unknown
    serialised: bytes = model.SerializeToString()
    return serialised


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
