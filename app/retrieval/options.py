"""Make the plan of a search from its options as JSON: what the caller says, else what the collection says."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from app.filters import Filter
from app.inference.port import Message
from app.retrieval.plan import (
    DEFAULT_RERANK_CANDIDATES,
    DEFAULT_TOP_K,
    DiversityOptions,
    ExpandOptions,
    Fusion,
    LegWeights,
    RankFusion,
    RelativeFusion,
    RerankOptions,
    ScoreFusion,
    SearchPlan,
    TransformOptions,
)
from app.retrieval.planning import build_plan
from app.retrieval.presets import with_presets
from app.retrieval.vocabulary import NO_VOCABULARY, Vocabulary
from app.settings import Settings
from app.stores.filters import parse_filter

FUSION_OPTIONS: Mapping[str, frozenset[str]] = {
    "relative": frozenset({"alpha"}),
    "rrf": frozenset({"k", "weights"}),
    "weighted": frozenset({"alpha", "normalisation"}),
}
"""The methods of fusion with their options, the default first."""


def plan_search(
    query: str,
    settings: Settings,
    given: Mapping[str, Any],
    defaults: Mapping[str, Any],
    *,
    forced_filter: Filter | None = None,
    max_age: timedelta | None = None,
    vocabulary: Vocabulary = NO_VOCABULARY,
    query_pointer: str = "/query",
    options_pointer: str = "",
) -> SearchPlan:
    """Return the plan of a search body without its query, whose members have the right types.

    A member of `given` wins over the collection's `defaults`, and nothing over the key's `forced_filter`. Raises what
    `build_plan` and `parse_filter` raise.
    """
    chosen = with_presets(given, defaults)
    top_k = chosen.get("top_k", DEFAULT_TOP_K)
    candidates = chosen.get("candidates")
    if candidates is not None and "candidates" not in given:
        # A default never makes a request wrong that is right by itself.
        candidates = max(candidates, top_k)
    asked = chosen.pop("filter", None)
    read = {name: _READERS[name](value) for name, value in chosen.items() if value is not None and name in _READERS}
    if chosen.get("rerank") is not None:
        read["rerank"] = _rerank(chosen["rerank"], top_k, candidates, is_asked="rerank" in given)
    return build_plan(
        query,
        settings,
        **{name: value for name, value in chosen.items() if name in _PLAIN and value is not None} | read,
        candidates=candidates,
        search_filter=None if asked is None else parse_filter(asked, f"{options_pointer}/filter"),
        forced_filter=forced_filter,
        max_age=max_age,
        vocabulary=vocabulary,
        query_pointer=query_pointer,
        options_pointer=options_pointer,
    )


def fusion_method(members: Iterable[str]) -> str:
    """Return the method that is meant where none is named: the first that has these options, else the default."""
    given = set(members)
    return next((method for method, known in FUSION_OPTIONS.items() if given <= known), next(iter(FUSION_OPTIONS)))


def _rerank(options: Mapping[str, Any], top_k: int, most: int | None, *, is_asked: bool) -> RerankOptions:
    said = _said(options)
    if not is_asked or "candidates" not in said:
        # As above: nobody who did not say a number is told that it is wrong.
        wanted = max(said.get("candidates", DEFAULT_RERANK_CANDIDATES), top_k)
        said["candidates"] = wanted if most is None else min(wanted, most)
    return RerankOptions(**said)


def _fusion(options: Mapping[str, Any]) -> Fusion:
    chosen = {name: value for name, value in options.items() if name != "method"}
    method = options.get("method") or fusion_method(chosen)
    if method == "weighted":
        return ScoreFusion(**_named(chosen, "alpha", "normalisation"))
    if method == "relative":
        return RelativeFusion(**_named(chosen, "alpha"))
    chosen = _named(chosen, "k", "weights")
    if isinstance(chosen.get("weights"), Mapping):
        chosen["weights"] = LegWeights(**chosen["weights"])
    return RankFusion(**chosen)


def _diversity(options: Mapping[str, Any]) -> DiversityOptions:
    return DiversityOptions(**{"relevance" if name == "lambda" else name: value for name, value in options.items()})


def _messages(turns: list[Mapping[str, Any]]) -> tuple[Message, ...]:
    return tuple(Message(turn["role"], turn["content"]) for turn in turns)


def _named(options: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names if name in options}


def _said(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


_PLAIN = frozenset(
    (
        "mode",
        "top_k",
        "document_ids",
        "query_syntax",
        "as_you_type",
        "fuzzy",
        "narrow_to_parents",
        "min_score",
        "min_score_on",
        "max_per_document",
        "group_by",
        "highlight",
        "explain",
        "cursor",
        "preset",
    )
)
"""Members of a body that are members of a plan as they stand."""

_READERS: Mapping[str, Callable[[Any], Any]] = {
    "fusion": _fusion,
    "fields": tuple,
    "queries": tuple,
    "facets": tuple,
    "messages": _messages,
    "transform": lambda options: TransformOptions(**_said(options)),
    "diversity": _diversity,
    "expand": lambda options: ExpandOptions(**_said(options)),
}
