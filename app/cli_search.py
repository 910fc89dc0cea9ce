"""Commands that find: the passages that answer a query, and an answer with citations."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.table import Column, Table

from app.answering.ask import AskOptions
from app.answering.ask import ask as run_ask
from app.answering.surroundings import chunk_at
from app.bootstrap import Services
from app.catalog.collections import Collection
from app.cli_place import Places
from app.domain import Notice
from app.retrieval.explained import ExplainedStage
from app.retrieval.options import plan_search
from app.retrieval.plan import SearchPlan
from app.retrieval.present import EmbedderOf, search_present
from app.retrieval.search import SearchResult
from app.retrieval.vocabulary import Vocabulary
from app.terminal import CollectionOption, console, errors, find_collection, open_services

EXPLAINED_HITS = 5
"""Hits of each stage that `--explain` shows."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(search)
    app.command()(ask)


class SearchMode(StrEnum):
    """The legs of a search."""

    HYBRID = "hybrid"
    DENSE = "dense"
    KEYWORD = "keyword"


Preset = Literal["economy", "power", "ultimate"]
Reranking = Literal["lexical", "embedding", "http", "cross_encoder", "llm"]
PresetOption = Annotated[Preset | None, typer.Option(help="Several options of the search at once")]


def search(
    query: str,
    collection: CollectionOption,
    top_k: Annotated[int | None, typer.Option("--top-k", "-k", help="Passages to show")] = None,
    mode: Annotated[SearchMode | None, typer.Option(help="Which legs search")] = None,
    preset: PresetOption = None,
    rerank: Annotated[Reranking | None, typer.Option(help="What orders the first hits anew")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Also show what each stage decided and gave")] = False,
) -> None:
    """Find the passages that answer a query."""
    with open_services() as services:
        wanted = find_collection(services, collection)
        plan = _plan(
            services,
            wanted,
            query,
            top_k=top_k,
            mode=None if mode is None else mode.value,
            preset=preset,
            rerank=None if rerank is None else {"model": rerank},
            explain=explain or None,
        )
        with services.opened.get(wanted.id) as opened:
            result = search_present(opened, _embedder_of(services, wanted), services.models, wanted.name, plan)
            places = ["\n".join(Places(opened.store).of_passage(passage)) for passage in result.passages]
        # Folded, since the default cuts what has no spaces to wrap at, which is all Chinese.
        folded = [Column(name, overflow="fold") for name in ("document", "passage")]
        table = Table("#", "score", *folded, show_lines=True)
        for passage, place in zip(result.passages, places, strict=True):
            table.add_row(str(passage.rank), f"{passage.score:.4f}", escape(place), escape(_shorten(passage.text)))
        console.print(table, soft_wrap=False)
        _tell_stages(result.trace or ())
        _tell_warnings(result.warnings)


def ask(
    question: str,
    collection: CollectionOption,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON")] = False,
    preset: PresetOption = None,
) -> None:
    """Answer a question with citations."""
    with open_services() as services:
        wanted = find_collection(services, collection)
        embedder_of = _embedder_of(services, wanted)
        with services.opened.get(wanted.id) as opened:

            def find(query: str) -> SearchResult:
                plan = _plan(services, wanted, query, preset=preset)
                return search_present(opened, embedder_of, services.models, wanted.name, plan)

            answer = run_ask(
                question,
                search=find,
                language_model=services.language_model,
                embedder=embedder_of(opened.index.space),
                analyzer=opened.analyzer,
                options=AskOptions(instructions=wanted.settings.get("instructions")),
                find_chunk=partial(chunk_at, opened.store),
            )
            places = [
                ", ".join(Places(opened.store).of_citation(citation, answer.sources)) for citation in answer.citations
            ]
        if as_json:
            sys.stdout.write(json.dumps(asdict(answer), ensure_ascii=False, default=str) + "\n")
            return
        console.print(escape(answer.text) if answer.answered else f"[yellow]no answer[/]: {answer.reason}")
        if answer.citations:
            console.print()
        for citation, place in zip(answer.citations, places, strict=True):
            console.print(
                f"\\[{citation.marker}] {escape(place)}: “{escape(_shorten(citation.quote))}”", highlight=False
            )
        _tell_warnings(answer.warnings)


def _embedder_of(services: Services, collection: Collection) -> EmbedderOf:
    return partial(services.embedders.of_vectors, model_name=collection.embedding_model)


def _plan(services: Services, collection: Collection, query: str, **given: Any) -> SearchPlan:
    """Return the plan of a search as the collection's defaults have it but for what is given."""
    said = {name: value for name, value in given.items() if value is not None}
    return plan_search(
        query,
        services.settings,
        said,
        collection.settings.get("defaults") or {},
        max_age=collection.max_age,
        vocabulary=Vocabulary.of(collection.settings),
    )


def _shorten(text: str, length: int = 300) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


def _tell_stages(stages: Sequence[ExplainedStage]) -> None:
    for stage in stages:
        count = "" if stage.count is None else f": {stage.count} hits"
        console.print(f"\n[bold]{escape(stage.stage)}[/]{count}", highlight=False)
        for name, fact in stage.facts.items():
            console.print(
                f"  {escape(name)}: {escape(_shorten(json.dumps(fact, ensure_ascii=False)))}", highlight=False
            )
        for hit in (stage.hits or ())[:EXPLAINED_HITS]:
            console.print(f"  {hit.score:.4f}  {escape(str(hit.document_id))}  {hit.chunk_id}", highlight=False)


def _tell_warnings(warnings: Sequence[Notice]) -> None:
    for warning in warnings:
        errors.print(f"[yellow]{warning.code}[/]: {escape(warning.detail)}")
