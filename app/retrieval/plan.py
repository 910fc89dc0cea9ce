"""What one search does: every option with its default and limit in one frozen object, checked before any work."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from app.domain import And, Filter
from app.errors import FieldError, InvalidRequest
from app.settings import Settings
from app.stores.port import VectorField

Mode: TypeAlias = Literal["dense", "keyword", "hybrid"]

DEFAULT_TOP_K = 5
DEFAULT_CANDIDATES = 100
MAX_LEG_WEIGHT = 1000.0


@dataclass(frozen=True, slots=True)
class LegWeights:
    """How much each leg's vote counts."""

    dense: float = 1.0
    keyword: float = 1.0


@dataclass(frozen=True, slots=True)
class RankFusion:
    """Reciprocal rank fusion; `auto` weighs the keyword leg by how much of the query it covers."""

    k: float = 10
    weights: Literal["auto"] | LegWeights = "auto"


@dataclass(frozen=True, slots=True)
class ScoreFusion:
    """Weighted min-max scores; `alpha` is the dense leg's share, `auto` takes it from the query's coverage."""

    alpha: Literal["auto"] | float = "auto"


Fusion: TypeAlias = RankFusion | ScoreFusion


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """One search, ready to run; made by `build_plan`, which checks it."""

    query: str
    mode: Mode = "hybrid"
    top_k: int = DEFAULT_TOP_K
    candidates: int = DEFAULT_CANDIDATES
    fusion: Fusion = field(default_factory=RankFusion)
    filter: Filter | None = None
    document_ids: tuple[str, ...] | None = None
    fields: tuple[VectorField, ...] = ("context",)
    """What the dense leg compares with the query; a chunk counts by the field in which it is nearest."""

    @property
    def legs(self) -> tuple[str, ...]:
        """Return the legs that vote; one whose fixed weight is 0 does not run."""
        if self.mode != "hybrid":
            return (self.mode,)
        weights = fixed_weights(self.fusion) or LegWeights()
        return tuple(name for name, weight in (("dense", weights.dense), ("keyword", weights.keyword)) if weight > 0)


def build_plan(
    query: str,
    settings: Settings,
    *,
    mode: Mode = "hybrid",
    top_k: int = DEFAULT_TOP_K,
    candidates: int | None = None,
    fusion: Fusion | None = None,
    search_filter: Filter | None = None,
    forced_filter: Filter | None = None,
    document_ids: Sequence[str] | None = None,
    fields: Sequence[VectorField] = ("context",),
    query_pointer: str = "/query",
    options_pointer: str = "",
) -> SearchPlan:
    """Return the plan of a search; raise `InvalidRequest` that names every wrong value at once.

    `candidates` is 100 unless given, or `top_k` where that is more. `forced_filter` comes from the key and narrows
    whatever the caller asks. The pointers say where query and options stand in the caller's body.
    """
    query = clean_query(query)
    plan = SearchPlan(
        query=query,
        mode=mode,
        top_k=top_k,
        candidates=min(max(DEFAULT_CANDIDATES, top_k), settings.max_candidates) if candidates is None else candidates,
        fusion=fusion or RankFusion(),
        filter=_both(forced_filter, search_filter),
        document_ids=None if document_ids is None else tuple(document_ids),
        fields=tuple(fields),
    )
    errors = [
        *query_errors(query, settings, query_pointer),
        *(
            FieldError(f"{options_pointer}/{name}", code, detail)
            for name, code, detail in (*_size_errors(plan, settings), *_fusion_errors(plan.fusion))
        ),
    ]
    if errors:
        raise InvalidRequest(errors[0].detail, errors=errors)
    return plan


def clean_query(query: str) -> str:
    """Return the query without NUL, lone surrogates and outer white space, which no index or model can take."""
    return query.replace("\0", " ").encode("utf-8", "ignore").decode("utf-8").strip()


def query_errors(query: str, settings: Settings, pointer: str) -> list[FieldError]:
    """Return what is wrong with the length of a cleaned query or question."""
    if not query:
        return [FieldError(pointer, "empty", f"{pointer.rsplit('/', 1)[-1]} holds no text; give at least one word")]
    if len(query) > settings.max_query_characters:
        detail = (
            f"{len(query)} characters are above the maximum of {settings.max_query_characters} "
            "(FOOTNOTE_MAX_QUERY_CHARACTERS)"
        )
        return [FieldError(pointer, "too_long", detail)]
    return []


def _both(forced: Filter | None, asked: Filter | None) -> Filter | None:
    if forced is None or asked is None:
        return forced or asked
    return And((forced, asked))


def _size_errors(plan: SearchPlan, settings: Settings) -> Iterator[tuple[str, str, str]]:
    for name, value, maximum in (
        ("top_k", plan.top_k, settings.max_top_k),
        ("candidates", plan.candidates, settings.max_candidates),
    ):
        if not 1 <= value <= maximum:
            yield name, "out_of_range", f"{name} {value} must be from 1 to {maximum} (FOOTNOTE_MAX_{name.upper()})"
    if plan.candidates < plan.top_k:
        yield "candidates", "too_small", f"candidates {plan.candidates} must be at least top_k {plan.top_k}"


def _fusion_errors(fusion: Fusion) -> Iterator[tuple[str, str, str]]:
    if isinstance(fusion, RankFusion):
        if not 0 <= fusion.k < math.inf:
            yield "fusion/k", "out_of_range", f"k {fusion.k} must be a number from 0"
        if isinstance(fusion.weights, LegWeights):
            yield from _weight_errors(fusion.weights)
    elif fusion.alpha != "auto" and not 0 <= fusion.alpha <= 1:
        yield "fusion/alpha", "out_of_range", f"alpha {fusion.alpha} must be from 0 to 1, or auto"


def _weight_errors(weights: LegWeights) -> Iterator[tuple[str, str, str]]:
    for name, value in (("dense", weights.dense), ("keyword", weights.keyword)):
        if not 0 <= value <= MAX_LEG_WEIGHT:
            yield f"fusion/weights/{name}", "out_of_range", f"weight {value} must be from 0 to {MAX_LEG_WEIGHT:g}"
    if weights.dense == 0 and weights.keyword == 0:
        yield "fusion/weights", "both_zero", "the weights of dense and keyword are both 0; one leg must count"


def fixed_weights(fusion: Fusion) -> LegWeights | None:
    """Return the legs' weights where the caller fixed them, `None` where they come from the query."""
    if isinstance(fusion, RankFusion):
        return None if fusion.weights == "auto" else fusion.weights
    return None if fusion.alpha == "auto" else LegWeights(fusion.alpha, 1 - fusion.alpha)
