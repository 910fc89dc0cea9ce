"""What one search does: every option with its default, in one frozen object; `planning.py` makes and checks it."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, TypeAlias

from app.domain import Notice
from app.filters import Filter
from app.inference.port import Message
from app.retrieval.limits import DEFAULT_LIMITS, Limits
from app.retrieval.vocabulary import NO_VOCABULARY, Vocabulary
from app.stores.port import VectorField

Mode: TypeAlias = Literal["dense", "keyword", "hybrid"]
Normalisation: TypeAlias = Literal["min_max", "z_score"]
RerankModel: TypeAlias = Literal["lexical", "embedding", "http", "cross_encoder", "llm"]
RerankMethod: TypeAlias = Literal["pointwise", "listwise"]
QuerySyntax: TypeAlias = Literal["simple", "advanced"]
Preset: TypeAlias = Literal["economy", "power", "ultimate"]

DEFAULT_TOP_K = 5
DEFAULT_CANDIDATES = 100
DEFAULT_RERANK_CANDIDATES = 30


@dataclass(frozen=True, slots=True)
class LegWeights:
    """How much each leg's vote counts."""

    dense: float = 1.0
    keyword: float = 1.0


@dataclass(frozen=True, slots=True)
class RankFusion:
    """Reciprocal rank fusion; `auto` weighs a keyword list by how much of its query the best hit holds."""

    k: float = 10
    weights: Literal["auto"] | LegWeights = "auto"


@dataclass(frozen=True, slots=True)
class ScoreFusion:
    """Weighted scores, normalised; `alpha` is the dense leg's share, `auto` weighs as in `RankFusion`."""

    alpha: Literal["auto"] | float = "auto"
    normalisation: Normalisation = "min_max"


@dataclass(frozen=True, slots=True)
class RelativeFusion:
    """Scores as shares of their leg's best one, keywords from 0, vectors from the last; `alpha` as in `ScoreFusion`."""

    alpha: Literal["auto"] | float = "auto"


Fusion: TypeAlias = RankFusion | ScoreFusion | RelativeFusion


@dataclass(frozen=True, slots=True)
class RerankOptions:
    """Score the first `candidates` again; `timeout_seconds` is the setting's unless it is given.

    `method` is how a language model is asked: passage by passage, or for one order of all.
    """

    model: RerankModel = "lexical"
    candidates: int = DEFAULT_RERANK_CANDIDATES
    timeout_seconds: float | None = None
    method: RerankMethod = "pointwise"


@dataclass(frozen=True, slots=True)
class DiversityOptions:
    """Show less of the same.

    `relevance` is the lambda of maximal marginal relevance: 1 keeps the order, 0 looks for difference alone. A hit
    whose vector is as near as `near_duplicates` (cosine) to one before it is left out; `None` keeps it. `merge` makes
    one of hits that overlap or touch in their document.
    """

    relevance: float = 0.7
    near_duplicates: float | None = 0.98
    merge: bool = True


@dataclass(frozen=True, slots=True)
class TransformOptions:
    """What a language model makes of the query before it is searched."""

    rewrite: bool = False
    multi_query: int = 0
    hyde: bool = False
    decompose: bool = False

    @property
    def is_wanted(self) -> bool:
        """Return whether any of it is asked for."""
        return self.rewrite or self.multi_query > 0 or self.hyde or self.decompose


@dataclass(frozen=True, slots=True)
class ExpandOptions:
    """What stands around a hit and is given with it, as exact pieces of the text, at most `max_characters` each.

    The widest that is asked for counts: `document`, else `section` (by heading), else `parent`, else `neighbours`
    chunks on either side.
    """

    neighbours: int = 0
    parent: bool = False
    section: bool = False
    document: bool = False
    max_characters: int = 6000

    @property
    def is_wanted(self) -> bool:
        """Return whether any of it is asked for."""
        return self.neighbours > 0 or self.parent or self.section or self.document


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """One search, ready to run; made by `build_plan`, which checks it."""

    query: str
    mode: Mode = "hybrid"
    top_k: int = DEFAULT_TOP_K
    candidates: int = DEFAULT_CANDIDATES
    fusion: Fusion = field(default_factory=RelativeFusion)
    filter: Filter | None = None
    document_ids: tuple[str, ...] | None = None
    max_age: timedelta | None = None
    """How long without a change documents of the collection are found."""
    is_narrowed: bool = False
    """Whether a key's filter is in `filter`: then no warning tells which fields the hidden documents have."""
    fields: tuple[VectorField, ...] = ("context",)
    """What the dense leg compares with the query; a chunk counts by the field in which it is nearest."""
    queries: tuple[str, ...] = ()
    """More queries, whose lists are fused with those of `query`."""
    messages: tuple[Message, ...] = ()
    """The conversation before, from which `rewrite` resolves references."""
    transform: TransformOptions = field(default_factory=TransformOptions)
    query_syntax: QuerySyntax | None = None
    vocabulary: Vocabulary = NO_VOCABULARY
    as_you_type: bool = False
    fuzzy: bool = True
    narrow_to_parents: int | None = None
    """Search only inside that many parents, those nearest to the query."""
    rerank: RerankOptions | None = None
    is_rerank_optional: bool = False
    """Whether nobody who asks named the reranker: where it is not there, the hits stay as they are."""
    min_score: float | None = None
    min_score_on: Literal["dense", "keyword"] | None = None
    diversity: DiversityOptions | None = None
    max_per_document: int | None = None
    group_by: Literal["document"] | None = None
    expand: ExpandOptions = field(default_factory=ExpandOptions)
    facets: tuple[str, ...] = ()
    highlight: bool = False
    explain: bool = False
    cursor: str | None = None
    preset: Preset | None = None
    limits: Limits = DEFAULT_LIMITS
    notices: tuple[Notice, ...] = ()
    """What is to be told of the options themselves."""

    @property
    def legs(self) -> tuple[str, ...]:
        """Return the legs that vote; one whose fixed weight is 0 does not run."""
        if self.mode != "hybrid":
            return (self.mode,)
        weights = fixed_weights(self.fusion) or LegWeights()
        return tuple(name for name, weight in (("dense", weights.dense), ("keyword", weights.keyword)) if weight > 0)

    @property
    def needs_embedder(self) -> bool:
        """Return whether the embedding model reads the query."""
        return "dense" in self.legs or (self.rerank is not None and self.rerank.model == "embedding")


def fixed_weights(fusion: Fusion) -> LegWeights | None:
    """Return the legs' weights where the caller fixed them, `None` where they come from the query."""
    if isinstance(fusion, RankFusion):
        return None if fusion.weights == "auto" else fusion.weights
    return None if fusion.alpha == "auto" else LegWeights(fusion.alpha, 1 - fusion.alpha)
