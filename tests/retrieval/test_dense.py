"""The dense leg in the fields of an enhanced collection."""

from typing import Any

import numpy as np
import pytest

from app.inference.embedders.hashed import HashedEmbedder
from app.inference.embedding_cache import CachedEmbedder
from app.inference.port import Embedder

FRUIT = ("apples grow on trees", "pears grow on trees", "engines need oil", "wheels need air")


def texts(result: Any) -> list[str]:
    return [passage.text for passage in result.passages]


def scores(result: Any) -> dict[str, float]:
    return {passage.text: passage.score for passage in result.passages}


class Narrow(HashedEmbedder):
    """The hashed embedder as if it read ten tokens, of which each word is one."""

    window_tokens = 10  # type: ignore[assignment]

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed_query_tokens(self, text: str) -> Any: ...

    def embed_passage_tokens(self, text: str) -> Any: ...


@pytest.mark.parametrize("embedder", [Narrow(), CachedEmbedder(Narrow(), 10**6)], ids=["plain", "cached"])
def test_a_query_of_which_a_part_is_embedded_is_told(shelf: Any, embedder: Embedder) -> None:
    shelf.put("plain", "plums grow on trees", embedder=embedder)
    for words, codes in ((10, []), (11, ["query_embedded_in_part"])):
        result = shelf.search("plums " * words, embedder, mode="dense")
        assert [warning.code for warning in result.warnings] == codes
    assert shelf.search("plums " * 11, embedder, mode="keyword").warnings == ()


def test_a_search_uses_contexts_unless_it_is_told_otherwise(enhanced: Any) -> None:
    by_context = enhanced.search("orchard", mode="dense")
    assert scores(by_context)[FRUIT[0]] > 0.2
    assert scores(enhanced.search("orchard", mode="dense", fields=["content"]))[FRUIT[0]] == pytest.approx(0, abs=0.2)


def test_a_chunk_counts_by_the_field_in_which_it_is_nearest(enhanced: Any) -> None:
    query = "apples grow on trees"
    one, other, both = (
        scores(enhanced.search(query, mode="dense", fields=fields))
        for fields in (["context"], ["content"], ["context", "content"])
    )
    assert both == pytest.approx({text: max(one[text], other[text]) for text in FRUIT})
    assert texts(enhanced.search(query, mode="dense", fields=["context", "content"]))[0] == query


def test_a_parent_is_found_through_its_nearest_child(enhanced: Any) -> None:
    result = enhanced.search("pears grow on trees", mode="dense", fields=["parent"])
    assert texts(result) == [FRUIT[1], max(FRUIT[2:], key=lambda text: scores(result).get(text, -1))]
    vectors = HashedEmbedder().embed_passages([f"orchard\n{text}" for text in FRUIT[:2]])
    middle = vectors.mean(axis=0)
    query = HashedEmbedder().embed_queries(["pears grow on trees"])[0]
    assert result.passages[0].score == pytest.approx(float(middle @ query / np.linalg.norm(middle)), abs=1e-5)


def test_documents_without_vectors_of_their_own_are_found_beside_those_that_have(enhanced: Any) -> None:
    enhanced.put("plain", "plums grow on trees")
    for fields in (["context"], ["content"], ["context", "content", "parent"]):
        found = enhanced.search("grow on trees", mode="dense", fields=fields, top_k=10)
        assert {passage.document_id for passage in found.passages} == {"fruit", "plain"}


def test_fields_that_nothing_has_a_vector_in_are_searched_as_far_as_that_goes(shelf: Any) -> None:
    shelf.put("plain", "plums grow on trees")
    assert shelf.find("plums", mode="dense", fields=["content"]) == ["plain"]
    assert shelf.find("plums", mode="dense", fields=["parent"]) == []


def test_a_filter_holds_in_every_field(enhanced: Any) -> None:
    enhanced.put("plain", "plums grow on trees")
    for field in ("context", "content", "parent"):
        found = enhanced.search("grow on trees", mode="dense", fields=[field], document_ids=["fruit"], top_k=10)
        assert {passage.document_id for passage in found.passages} == {"fruit"}


@pytest.mark.parametrize("field", ["context", "content", "parent"])
@pytest.mark.parametrize("narrowed", [{"query_syntax": "simple"}, {"narrow_to_parents": 1}], ids=["phrase", "parents"])
def test_a_search_that_is_narrowed_compares_the_same_fields(enhanced: Any, narrowed: Any, field: Any) -> None:
    query = 'pears "grow on trees"' if "query_syntax" in narrowed else "pears grow on trees"
    plain = scores(enhanced.search("pears grow on trees", mode="dense", fields=[field], top_k=10))
    found = scores(enhanced.search(query, mode="dense", fields=[field], top_k=10, **narrowed))
    assert set(found) == set(FRUIT[:2])
    assert found["pears grow on trees"] == pytest.approx(plain["pears grow on trees"], abs=1e-5)
