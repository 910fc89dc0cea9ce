"""Whatever people type is a legal query, in every syntax; a collection may have words of its own."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

SIGNS = st.text(alphabet='ab -":“”„«»＂$.\\()*~^[]{}!+&|/日本\n\x00', max_size=80)
ANY_QUERY = (st.text(min_size=1, max_size=120) | SIGNS).filter(lambda text: bool(text.replace("\0", " ").strip()))


@pytest.fixture(scope="module")
def library(admin: TestClient) -> str:
    admin.put(
        "/v1/collections/library",
        json={"analysis": {"synonyms": [["car", "automobile", "motor vehicle"]], "stop_words": ["please"]}},
    )
    documents = [
        {"id": "car", "text": "A red car stands in the garage.", "metadata": {"team": "road"}},
        {"id": "auto", "text": "An automobile needs petrol.", "metadata": {"team": "road"}},
        {"id": "fox", "text": "The quick red fox jumps over 日本語 fences.", "metadata": {"team": "wild"}},
        {"id": "katze", "text": "Die Katzen schliefen in den Häusern der Nachbarn, und es war für alle sehr ruhig."},
    ]
    answer = admin.post(
        "/v1/collections/library/documents", json={"documents": documents}, headers={"Prefer": "wait=60"}
    )
    assert all(item["status"] == 201 for item in answer.json()["results"]), answer.text
    return "library"


@pytest.fixture
def search(admin: TestClient, library: str) -> Callable[..., dict[str, Any]]:
    def ask(query: str, **options: Any) -> dict[str, Any]:
        answer = admin.post(f"/v1/collections/{library}/search", json={"query": query, **options})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    return ask


def ids(answer: dict[str, Any]) -> list[str]:
    return [hit["document_id"] for hit in answer["data"]]


@pytest.mark.parametrize("syntax", [None, "simple", "advanced"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=ANY_QUERY, as_you_type=st.booleans(), mode=st.sampled_from(["keyword", "hybrid"]))
def test_any_text_is_a_legal_query(
    search: Callable[..., dict[str, Any]], syntax: str | None, query: str, as_you_type: bool, mode: str
) -> None:
    encoded = query.encode("utf-8", "ignore").decode()
    if encoded.replace("\0", " ").strip():
        search(encoded, query_syntax=syntax, as_you_type=as_you_type, mode=mode, highlight=True, explain=True)


def test_phrases_exclusions_and_fields(search: Callable[..., dict[str, Any]]) -> None:
    assert ids(search('"red fox"', query_syntax="simple")) == ["fox"]
    assert "car" not in ids(search("red -garage", query_syntax="simple"))
    assert set(ids(search("red team:road", query_syntax="advanced"))) == {"car", "auto"}
    answer = search("red owner:me", query_syntax="advanced")
    assert [warning["code"] for warning in answer["warnings"]] == ["unknown_metadata_field"]


def test_guesses_are_told(search: Callable[..., dict[str, Any]]) -> None:
    answer = search("petorl", mode="keyword")
    assert ids(answer) == ["auto"]
    (warning,) = answer["warnings"]
    assert (warning["code"], warning["word"], warning["used"]) == ("fuzzy_match", "petorl", ["petrol"])
    assert ids(search("petorl", mode="keyword", fuzzy=False)) == []


def test_a_collections_own_words_count(search: Callable[..., dict[str, Any]]) -> None:
    assert set(ids(search("cars please", mode="keyword"))) == {"car", "auto"}


def test_a_document_is_stemmed_by_its_own_language(search: Callable[..., dict[str, Any]]) -> None:
    assert ids(search("Haus und Katze", mode="keyword")) == ["katze"]


def test_highlights_are_places_of_the_document(
    admin: TestClient, library: str, search: Callable[..., dict[str, Any]]
) -> None:
    (hit,) = search("automobiles", mode="keyword", highlight=True, top_k=1)["data"]
    (place,) = hit["highlights"]
    text = admin.get(f"/v1/collections/{library}/documents/{hit['document_id']}/text", params=place).text
    assert text in ("automobile", "car")
    assert search("automobiles", top_k=1)["data"][0]["highlights"] is None


@pytest.mark.parametrize(
    ("analysis", "pointer", "says"),
    [
        ({"language": "klingon"}, "/analysis/language", "klingon"),
        ({"stop_words": ["x"] * 5001}, "/analysis", "FOOTNOTE_MAX_VOCABULARY"),
        ({"synonyms": [["alone"]]}, "/analysis/synonyms/0", ""),
        ({"synonym": []}, "/analysis/synonym", "synonyms"),
        ({"stop_words": [""]}, "/analysis/stop_words/0", ""),
        ({"stop_words": ["please", "of course"]}, "/analysis/stop_words/1", "of course"),
    ],
)
def test_an_analysis_that_cannot_be_is_refused_by_name(
    admin: TestClient, collection: str, analysis: Any, pointer: str, says: str
) -> None:
    answer = admin.patch(f"/v1/collections/{collection}", json={"analysis": analysis})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert says in answer.text


def test_a_collection_answers_its_analysis(admin: TestClient, collection: str) -> None:
    assert admin.get(f"/v1/collections/{collection}").json()["analysis"]["language"] == "auto"
    asked = {"synonyms": [["a", "b"]], "stop_words": ["c"], "language": "de"}
    admin.patch(f"/v1/collections/{collection}", json={"analysis": asked})
    assert admin.get(f"/v1/collections/{collection}").json()["analysis"] == asked
