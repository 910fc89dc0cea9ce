"""Build the ONNX graph of multilingual-e5-small: token ids of one text in, its unit vector and its tokens' out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray

from app.inference.embedders.e5_weights import PackedWeights

INPUT = "input_ids"
OUTPUT = "embedding"
TOKENS = "token_states"
"""The last layer's output, one row for each token; computed beside the vector where it is asked for."""

_OPSET = 18
_IR_VERSION = 9
_MICROSOFT = "com.microsoft"
_INT8_LIMIT = 127

# How much of an activation's spread moves into the weights; 0.6 kept the most of the float model's ranking.
_SMOOTHING = 0.6
_SMALLEST_SPREAD = 1e-5

ActivationSpread: TypeAlias = Mapping[str, NDArray[np.float32]]
"""Root mean square of each channel, by the name of the activation that goes into a linear layer."""


@dataclass(slots=True)
class _Graph:
    nodes: list[Any] = field(default_factory=list)
    initializers: list[Any] = field(default_factory=list)

    def constant(self, name: str, values: NDArray[Any]) -> str:
        self.initializers.append(onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def node(self, operator: str, inputs: Sequence[str], output: str, *, domain: str = "", **attributes: Any) -> str:
        self.split(operator, inputs, [output], domain=domain, **attributes)
        return output

    def split(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str], *, domain: str = "", **attributes: Any
    ) -> Sequence[str]:
        name = f"{len(self.nodes)}.{operator}"
        self.nodes.append(onnx.helper.make_node(operator, inputs, outputs, name=name, domain=domain, **attributes))
        return outputs


@dataclass(frozen=True, slots=True)
class _LinearLayer:
    """`input @ weights.T + bias`; weights (outputs, inputs)."""

    name: str
    input: str
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]


_Linear: TypeAlias = Callable[[_Graph, _LinearLayer], str]


def float_model(weights: PackedWeights) -> onnx.ModelProto:
    """Build the graph with float32 weights; each activation that goes into a linear layer is an output too."""
    activations: list[str] = []

    def linear(graph: _Graph, layer: _LinearLayer) -> str:
        activations.append(layer.input)
        product = graph.node(
            "MatMul", [layer.input, graph.constant(f"{layer.name}.w", layer.weights.T)], f"{layer.name}.p"
        )
        return graph.node("Add", [product, graph.constant(f"{layer.name}.b", layer.bias)], layer.name)

    model = _model(weights, linear)
    spied = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in activations]
    model.graph.output.extend(spied)
    return model


def int8_model(weights: PackedWeights, spread: ActivationSpread) -> onnx.ModelProto:
    """Build the graph with int8 weights, one scale per output channel, and activations quantised as they come.

    Outlying activation channels are first divided by a factor that their weights are multiplied by, so that both
    fit eight bits (SmoothQuant, Xiao 2023).
    """

    def linear(graph: _Graph, layer: _LinearLayer) -> str:
        source, matrix = layer.input, layer.weights
        if source in spread:
            factor = _smoothing_factor(spread[source], matrix)
            source = graph.node("Mul", [source, graph.constant(f"{layer.name}.d", 1 / factor)], f"{layer.name}.x")
            matrix = matrix * factor
        scale = np.abs(matrix).max(axis=1) / _INT8_LIMIT
        inputs = [
            source,
            graph.constant(f"{layer.name}.w", np.rint(matrix / scale[:, None]).astype(np.int8).T),
            graph.constant(f"{layer.name}.s", scale),
            graph.constant(f"{layer.name}.z", np.zeros(len(scale), np.int8)),
            graph.constant(f"{layer.name}.b", layer.bias),
        ]
        return graph.node("DynamicQuantizeMatMul", inputs, layer.name, domain=_MICROSOFT)

    return _model(weights, linear)


def _smoothing_factor(spread: NDArray[np.float32], matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    activations = np.maximum(spread, _SMALLEST_SPREAD) ** _SMOOTHING
    columns = np.maximum(np.abs(matrix).max(axis=0), _SMALLEST_SPREAD) ** (1 - _SMOOTHING)
    factor: NDArray[np.float32] = (activations / columns).astype(np.float32)
    return factor


def _model(weights: PackedWeights, linear: _Linear) -> onnx.ModelProto:
    graph = _Graph()
    hidden = _embedded_tokens(graph, weights)
    for layer in range(weights.shape.layers):
        hidden = _encoder_layer(graph, weights, linear, f"l{layer}", hidden)
    total = graph.node("ReduceSum", [hidden, graph.constant("pool.axis", np.array([1]))], "pool.sum", keepdims=0)
    # The mean's divisor cancels in the unit length.
    graph.node("LpNormalization", [total], OUTPUT, axis=-1, p=2)
    graph.node("Identity", [hidden], TOKENS)

    ids = onnx.helper.make_tensor_value_info(INPUT, onnx.TensorProto.INT32, ["texts", "tokens"])
    width = weights.shape.hidden
    outputs = [
        onnx.helper.make_tensor_value_info(OUTPUT, onnx.TensorProto.FLOAT, ["texts", width]),
        onnx.helper.make_tensor_value_info(TOKENS, onnx.TensorProto.FLOAT, ["texts", "tokens", width]),
    ]
    proto = onnx.helper.make_graph(graph.nodes, "multilingual-e5-small", [ids], outputs, graph.initializers)
    opsets = [onnx.helper.make_opsetid("", _OPSET), onnx.helper.make_opsetid(_MICROSOFT, 1)]
    return onnx.helper.make_model(proto, opset_imports=opsets, producer_name="footnote", ir_version=_IR_VERSION)


def _embedded_tokens(graph: _Graph, weights: PackedWeights) -> str:
    """Add token, position and type embeddings; the token table stays in its 4-bit blocks."""
    shape = weights.shape
    scales, halves = weights.blocks("emb.word", shape.vocabulary, shape.hidden)
    rows = graph.node("Gather", [graph.constant("emb.halves", halves), INPUT], "emb.rows")
    low = graph.node("BitwiseAnd", [rows, graph.constant("emb.low_mask", np.array(15, np.uint8))], "emb.low")
    shift = graph.constant("emb.high_shift", np.array(4, np.uint8))
    high = graph.node("BitShift", [rows, shift], "emb.high", direction="RIGHT")
    whole = graph.node("Concat", [low, high], "emb.whole", axis=-1)
    floats = graph.node("Cast", [whole], "emb.floats", to=onnx.TensorProto.FLOAT)
    centred = graph.node("Sub", [floats, graph.constant("emb.zero", np.array(8, np.float32))], "emb.centred")

    row_scales = graph.node("Gather", [graph.constant("emb.scales", scales[:, :, None]), INPUT], "emb.row_scales")
    float_scales = graph.node("Cast", [row_scales], "emb.float_scales", to=onnx.TensorProto.FLOAT)
    scaled = graph.node("Mul", [centred, float_scales], "emb.scaled")
    flat = graph.constant("emb.shape", np.array([0, 0, shape.hidden]))
    tokens = graph.node("Reshape", [scaled, flat], "emb.tokens")

    places = weights.vector("emb.pos").reshape(shape.positions, shape.hidden)
    first_type = weights.vector("emb.type")[: shape.hidden]
    count = graph.node("Shape", [INPUT], "emb.count", start=1, end=2)
    start = graph.constant("emb.start", np.array([0]))
    positions = graph.node(
        "Slice", [graph.constant("emb.positions", places + first_type), start, count, start], "emb.place"
    )
    return _normalised(graph, weights, graph.node("Add", [tokens, positions], "emb.sum"), "emb.ln")


def _encoder_layer(graph: _Graph, weights: PackedWeights, linear: _Linear, name: str, hidden: str) -> str:
    width, inner = weights.shape.hidden, weights.shape.feed_forward

    def stacked(output: str, source: str, parts: Sequence[str], rows: int, columns: int) -> str:
        matrix = np.vstack([weights.matrix(f"{part}.w", rows, columns) for part in parts])
        bias = np.concatenate([weights.vector(f"{part}.b") for part in parts])
        return linear(graph, _LinearLayer(output, source, matrix, bias))

    parts = [f"{name}.q", f"{name}.k", f"{name}.v"]
    joint = stacked(f"{name}.qkv", hidden, parts, width, width)
    graph.split("Split", [joint], parts, axis=-1, num_outputs=len(parts))
    attended = graph.node(
        "MultiHeadAttention", parts, f"{name}.attended", domain=_MICROSOFT, num_heads=weights.shape.heads
    )
    projected = stacked(f"{name}.ao", attended, [f"{name}.ao"], width, width)
    hidden = _normalised(graph, weights, graph.node("Add", [hidden, projected], f"{name}.a"), f"{name}.aln")

    wide = stacked(f"{name}.fi", hidden, [f"{name}.fi"], inner, width)
    active = graph.node("Gelu", [wide], f"{name}.gelu", domain=_MICROSOFT)
    narrow = stacked(f"{name}.fo", active, [f"{name}.fo"], width, inner)
    return _normalised(graph, weights, graph.node("Add", [hidden, narrow], f"{name}.f"), f"{name}.oln")


def _normalised(graph: _Graph, weights: PackedWeights, source: str, name: str) -> str:
    scale = graph.constant(f"{name}.w", weights.vector(f"{name}.w"))
    shift = graph.constant(f"{name}.b", weights.vector(f"{name}.b"))
    epsilon = weights.shape.epsilon
    return graph.node("LayerNormalization", [source, scale, shift], name, axis=-1, epsilon=epsilon)
