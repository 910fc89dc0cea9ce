"""Make the plan of a search from its options as JSON: what the caller says, else what the collection says."""

from collections.abc import Mapping
from typing import Any

from app.domain import Filter
from app.retrieval.plan import DEFAULT_TOP_K, Fusion, LegWeights, RankFusion, ScoreFusion, SearchPlan, build_plan
from app.settings import Settings
from app.stores.filters import parse_filter


def plan_search(
    query: str,
    settings: Settings,
    given: Mapping[str, Any],
    defaults: Mapping[str, Any],
    *,
    forced_filter: Filter | None = None,
    query_pointer: str = "/query",
    options_pointer: str = "",
) -> SearchPlan:
    """Return the plan of a search body without its query, whose members have the right types.

    A member of `given` wins over the collection's `defaults`, and nothing over the key's `forced_filter`. Raises what
    `build_plan` and `parse_filter` raise.
    """
    chosen = {**defaults, **given}
    top_k = chosen.get("top_k", DEFAULT_TOP_K)
    candidates = chosen.get("candidates")
    if candidates is not None and "candidates" not in given:
        # A default never makes a request wrong that is right by itself.
        candidates = max(candidates, top_k)
    asked = chosen.get("filter")
    return build_plan(
        query,
        settings,
        mode=chosen.get("mode", "hybrid"),
        top_k=top_k,
        candidates=candidates,
        fusion=_fusion(chosen.get("fusion")),
        search_filter=None if asked is None else parse_filter(asked, f"{options_pointer}/filter"),
        forced_filter=forced_filter,
        document_ids=chosen.get("document_ids"),
        query_pointer=query_pointer,
        options_pointer=options_pointer,
    )


def _fusion(options: Mapping[str, Any] | None) -> Fusion | None:
    if options is None:
        return None
    if options.get("method") == "weighted":
        return ScoreFusion(**{name: options[name] for name in ("alpha",) if name in options})
    chosen = {name: options[name] for name in ("k", "weights") if name in options}
    if isinstance(chosen.get("weights"), Mapping):
        chosen["weights"] = LegWeights(**chosen["weights"])
    return RankFusion(**chosen)
