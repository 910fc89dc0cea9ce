"""Read what people type into search boxes: phrases, exclusions and fields. Any text at all is a legal query."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.domain import Notice
from app.filters import And, Condition, Filter, Not, Operator, Or
from app.retrieval.plan import SearchPlan

MOST_CONDITIONS = 256
"""Phrases, exclusions and fields that are read of one query, the first; later ones are text, which a search tells."""

_QUOTED = '"(?P<straight>[^"]*)"|“(?P<curved>[^“”]*)”|„(?P<low>[^„“”]*)[“”]|«(?P<angled>[^«»]*)»|＂(?P<wide>[^＂]*)＂'
_FIELD = r"(?P<field>[^\W\d][\w.-]*|\$(?:created_at|document_id|source_type|updated_at)):(?![\s:/]|$)"
# A minus or a field begins where a word does: `e-mail` is one word.
_TOKEN = rf'(?:(?<!\S)(?P<minus>-)?(?:{{field}})?)?(?:{_QUOTED}|(?P<word>[^\s"“”„«»＂]+))'
_QUOTES = re.compile(_QUOTED)
_SIMPLE = re.compile(_TOKEN.format(field="(?P<field>(?!))"))
_ADVANCED = re.compile(_TOKEN.format(field=_FIELD))
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_KINDS = ("straight", "curved", "low", "angled", "wide")


@dataclass(frozen=True, slots=True)
class TypedQuery:
    """What a query says: `text` to rank by, phrases as they were typed, and a filter made of its fields.

    `only_excludes` tells that the text is no more than what is excluded. `unread` counts phrases, exclusions and fields
    that stay text since there are too many of them.
    """

    text: str
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    filter: Filter | None = None
    fields: frozenset[str] = frozenset()
    only_excludes: bool = False
    unread: int = 0


def quoted_phrases(query: str) -> list[str]:
    """Return what stands between quotation marks; one that has no other is a sign like any."""
    return [phrase for match in _QUOTES.finditer(query) if (phrase := _quoted(match))][:MOST_CONDITIONS]


def read_query(plan: SearchPlan) -> tuple[SearchPlan, TypedQuery]:
    """Return the plan with the text to rank by as its query, and what else its query says in the plan's syntax."""
    if plan.query_syntax is None:
        return plan, TypedQuery(plan.query)
    typed = parse(plan.query, with_fields=plan.query_syntax == "advanced")
    both = [part for part in (plan.filter, typed.filter) if part is not None]
    search_filter = And(tuple(both)) if len(both) > 1 else next(iter(both), None)
    return replace(plan, query=typed.text, filter=search_filter), typed


def parse(query: str, *, with_fields: bool) -> TypedQuery:
    """Return what the query says: `"a phrase"` is required, `-word` and `-"a phrase"` are excluded.

    `with_fields` reads `field:value` and `field:"a value"` as filters, and as exclusions after a minus.
    """
    ranked: list[str] = []
    asides: list[str] = []
    required: list[str] = []
    excluded: list[str] = []
    filters: list[Filter] = []
    names: set[str] = set()
    end = 0
    conditions = _conditions(query, with_fields=with_fields)
    for match in conditions[:MOST_CONDITIONS]:
        ranked.append(query[end : match.start()])
        end = match.end()
        value = match["word"] or _quoted(match)
        if match["field"]:
            names.add(match["field"])
            is_value = _has_value(match["field"], value)
            filters.append(Not(is_value) if match["minus"] else is_value)
            asides.append(value)
        elif match["minus"]:
            excluded.append(value)
            asides.append(value)
        else:
            required.append(value)
            ranked.append(f" {value} ")
    ranked.append(query[end:])
    text = " ".join("".join(ranked).split())
    return TypedQuery(
        # A model needs something to embed, also for a query of conditions alone.
        text=text or " ".join(asides) or query,
        required=tuple(required),
        excluded=tuple(excluded),
        filter=None if not filters else And(tuple(filters)),
        fields=frozenset(names),
        only_excludes=bool(excluded) and not text,
        unread=max(0, len(conditions) - MOST_CONDITIONS),
    )


def without_guesses(warnings: Iterable[Notice], typed: TypedQuery) -> list[Notice]:
    """Return the warnings but for types that a typed value might have had and has not."""
    return [
        warning
        for warning in warnings
        if warning.code != "type_mismatch" or warning.extra.get("field") not in typed.fields
    ]


def _conditions(query: str, *, with_fields: bool) -> Sequence[re.Match[str]]:
    tokens = (_ADVANCED if with_fields else _SIMPLE).finditer(query)
    return [match for match in tokens if _is_condition(match)]


def _is_condition(match: re.Match[str]) -> bool:
    word = match["word"]
    if word is None:
        return bool(_quoted(match))
    if match["field"]:
        return ":" not in word
    return bool(match["minus"]) and not word.startswith("-")


def _quoted(match: re.Match[str]) -> str:
    return next((match[kind] for kind in _KINDS if match[kind]), "").strip()


def _has_value(field: str, value: str) -> Filter:
    """Return the filter for documents whose field is the value, or a list that contains it, whatever its type."""
    values: list[str | float | bool] = [value]
    if _NUMBER.fullmatch(value):
        values.append(float(value) if "." in value else int(value))
    elif value.casefold() in ("true", "false"):
        values.append(value.casefold() == "true")
    operators = (Operator.EQ,) if field.startswith("$") else (Operator.EQ, Operator.CONTAINS)
    return Or(tuple(Condition(field, operator, each) for each in values for operator in operators))
