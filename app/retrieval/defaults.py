"""Fit a collection's default options to a request: no default makes a request wrong that is right by itself."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from app.domain import Notice
from app.errors import InvalidRequest
from app.retrieval.plan import SearchPlan

Options: TypeAlias = Mapping[str, Any]

_MINIMUM = ("min_score", "min_score_on")
"""A number and the score that it is for: neither means anything without the other."""


def fit_defaults(plan: Callable[[Options], SearchPlan], said: Options, usual: Options) -> SearchPlan:
    """Return the plan with those of the `usual` options that fit what is `said`; its notices name the others.

    A default minimum is for the score that the defaults give, so a request for another score leaves it out. Raises
    what `plan` raises of the request itself.
    """
    notices: list[Notice] = []
    if _is_of_another_score(said, usual):
        reason = "it is for another score than the one that this search gives"
        notices.append(_left_out([name for name in _MINIMUM if name in usual], reason))
    if notices or said.get("min_score", usual) is None:
        usual = _without(usual, _MINIMUM)
    while True:
        try:
            return replace(plan(usual), notices=tuple(notices))
        except InvalidRequest as error:
            fitting = next(_fitting_better(plan, usual, error), None)
            if fitting is None:
                raise
            notices.append(_left_out([name for name in usual if name not in fitting], error.detail))
            usual = fitting


def _fitting_better(plan: Callable[[Options], SearchPlan], usual: Options, error: InvalidRequest) -> Iterator[Options]:
    """Yield the options without the one or other, where that leaves less wrong."""
    for name in usual:
        rest = _without(usual, _MINIMUM if name in _MINIMUM else (name,))
        try:
            plan(rest)
        except InvalidRequest as other:
            if len(other.errors) >= len(error.errors):
                continue
        yield rest


def _is_of_another_score(said: Options, usual: Options) -> bool:
    if usual.get("min_score") is None or "min_score" in said:
        return False
    return _score_of({**usual, **said}) != _score_of(usual)


def _score_of(options: Options) -> tuple[str, ...]:
    """Return which score a minimum is held against: that of a leg, or of a reranker, whose scales differ."""
    if options.get("min_score_on") is not None:
        return (options["min_score_on"],)
    rerank = options.get("rerank")
    if rerank is None:
        return (options.get("mode") or "hybrid",)
    return ("rerank", rerank.get("model") or "lexical", rerank.get("method") or "pointwise")


def _without(options: Options, names: tuple[str, ...]) -> Options:
    return {name: value for name, value in options.items() if name not in names}


def _left_out(names: list[str], reason: str) -> Notice:
    detail = f"the collection's default {' and '.join(names)} was left out of this search: {reason}"
    return Notice("default_left_out", detail, {"options": names})
