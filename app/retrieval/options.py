"""Make the plan of a search from its options as JSON: what the caller says, else what the collection says."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from app.filters import Filter
from app.inference.port import Message
from app.retrieval.defaults import fit_defaults
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
from app.retrieval.presets import with_preset
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

    A member of `given` wins over the collection's `defaults`, and nothing over the key's `forced_filter`. A default
    that does not fit what is given is left out and named in the plan's notices. Raises what `build_plan` and
    `parse_filter` raise of what is given.
    """
    said = with_preset(given)
    usual = with_preset(defaults) if given.get("preset", defaults) is not None else dict(defaults)

    def plan(usual: Mapping[str, Any]) -> SearchPlan:
        chosen = _with_fitting_numbers(given, {**usual, **said}, settings)
        asked = chosen.pop("filter", None)
        read = {name: _READERS[name](value) for name, value in chosen.items() if value is not None and name in _READERS}
        return build_plan(
            query,
            settings,
            **{name: value for name, value in chosen.items() if name in _PLAIN and value is not None} | read,
            search_filter=None if asked is None else parse_filter(asked, f"{options_pointer}/filter"),
            forced_filter=forced_filter,
            max_age=max_age,
            is_rerank_optional="rerank" not in given,
            vocabulary=vocabulary,
            query_pointer=query_pointer,
            options_pointer=options_pointer,
        )

    return fit_defaults(plan, said, usual)


def fusion_method(members: Iterable[str]) -> str:
    """Return the method that is meant where none is named: the first that has these options, else the default."""
    given = set(members)
    return next((method for method, known in FUSION_OPTIONS.items() if given <= known), next(iter(FUSION_OPTIONS)))


def _with_fitting_numbers(given: Mapping[str, Any], chosen: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Return the chosen options with each number that is not given moved to fit those that are, and the limits.

    Nobody who did not say a number is told that it is wrong.
    """
    fitting = dict(chosen)
    reranked = (given.get("rerank") or {}).get("candidates")
    if "top_k" not in chosen:
        fitting["top_k"] = min(DEFAULT_TOP_K, settings.max_top_k)
    elif "top_k" not in given:
        fitting["top_k"] = min(_numbers(chosen["top_k"], given.get("candidates"), reranked, settings.max_top_k))
    if chosen.get("candidates") is not None and "candidates" not in given:
        wanted = max(_numbers(chosen["candidates"], fitting["top_k"], reranked))
        fitting["candidates"] = min(wanted, settings.max_candidates)
    if chosen.get("rerank") is not None:
        fitting["rerank"] = _rerank(given, fitting, settings)
    characters = min(ExpandOptions().max_characters, settings.max_expand_characters)
    fitting["expand"] = {"max_characters": characters, **_said(chosen.get("expand") or {})}
    return fitting


def _numbers(*numbers: int | None) -> list[int]:
    return [number for number in numbers if number is not None]


def _rerank(given: Mapping[str, Any], fitting: Mapping[str, Any], settings: Settings) -> RerankOptions:
    said = _said(fitting["rerank"])
    if "rerank" not in given or "candidates" not in said:
        wanted = max(said.get("candidates", DEFAULT_RERANK_CANDIDATES), fitting["top_k"])
        said["candidates"] = min(wanted, fitting.get("candidates") or settings.max_candidates)
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
        "candidates",
        "rerank",
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
    "expand": lambda options: ExpandOptions(**options),
}
