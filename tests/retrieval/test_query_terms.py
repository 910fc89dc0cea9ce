"""What people type is understood: phrases, exclusions, synonyms, misspellings, words being typed, languages."""

from typing import Any

import pytest

from app.domain import Notice
from app.retrieval.plan import SearchPlan
from app.retrieval.vocabulary import Vocabulary
from app.settings import Settings


@pytest.fixture
def animals(shelf: Any) -> Any:
    shelf.put("fox", "the quick red fox jumps over a fence", team="wild", year=2024)
    shelf.put("car", "a red car, quick as a fox in a hurry", team="road", year=2025)
    shelf.put("auto", "an automobile waits at the fence", team=["road", "slow"], year=2025)
    shelf.put("lorry", "the motor vehicle of the farmer", team="farm")
    return shelf


def warned(shelf: Any, query: str, **options: Any) -> list[Notice]:
    return list(shelf.search(query, **options).warnings)


@pytest.mark.parametrize("mode", ["keyword", "dense", "hybrid"])
class TestConditions:
    """They hold for every leg."""

    def test_a_phrase_is_required(self, animals: Any, mode: Any) -> None:
        assert animals.find('"red fox" fence', mode=mode, query_syntax="simple") == ["fox"]

    def test_a_word_is_excluded(self, animals: Any, mode: Any) -> None:
        assert "car" in animals.find("quick fox", mode=mode)
        found = animals.find("quick fox -cars", mode=mode, query_syntax="simple")
        assert found[0] == "fox"
        assert "car" not in found

    def test_a_phrase_is_excluded(self, animals: Any, mode: Any) -> None:
        assert "fox" not in animals.find('quick fox -"red foxes"', mode=mode, query_syntax="simple")

    def test_a_field_narrows_as_a_filter_does(self, animals: Any, mode: Any) -> None:
        assert sorted(animals.find("fence red team:road", mode=mode, query_syntax="advanced")) == ["auto", "car"]
        assert animals.find("fence red year:2024", mode=mode, query_syntax="advanced") == ["fox"]
        assert "fox" not in animals.find("fence red -team:wild", mode=mode, query_syntax="advanced")

    def test_many_chunks_that_are_kept_out_leave_room_for_the_rest(
        self, shelf: Any, mode: Any, monkeypatch: Any
    ) -> None:
        # Few enough to be listed or not: both ways must find the same.
        monkeypatch.setattr("app.retrieval.restricting.MOST_EXACT", 1)
        for number in range(60):
            shelf.put(f"noise{number}", f"apple pear plum {number} excluded")
        shelf.put("wanted", "apple pear plum and something else")
        shelf.put("other", "apple pear plum and one more thing")
        found = shelf.find("apple pear plum -excluded", mode=mode, query_syntax="simple", top_k=2, candidates=2)
        assert sorted(found) == ["other", "wanted"]


def test_a_field_that_no_document_has_is_warned_of_and_types_are_not_guessed_aloud(animals: Any) -> None:
    codes = [each.code for each in warned(animals, "fox owner:me", query_syntax="advanced")]
    assert codes == ["unknown_metadata_field"]
    assert warned(animals, "fox year:2024 team:wild", query_syntax="advanced") == []


def test_chinese_phrases_stand_together(shelf: Any) -> None:
    shelf.put("a", "北京大学的招生办公室在使用Python编程")
    shelf.put("b", "大学在北京，招生办公室编程用Python")
    assert shelf.find('招生 "北京大学"', mode="keyword", query_syntax="simple") == ["a"]
    assert shelf.find('招生 "用Python编"', mode="keyword", query_syntax="simple") == ["a"]
    assert shelf.find('招生 -"北京大学"', mode="hybrid", query_syntax="simple") == ["b"]


def test_without_a_syntax_a_phrase_raises_and_excludes_nothing(animals: Any) -> None:
    animals.put("other", "fox red and quick and red fox")
    assert animals.find('"fox red" quick', mode="keyword")[0] == "other"
    assert set(animals.find('"fox red" quick -fence', mode="keyword")) >= {"fox", "car", "other", "auto"}


class TestSynonyms:
    VOCABULARY = Vocabulary(synonyms=(("car", "automobile", "motor vehicle"),), stop_words=("fence",))

    @pytest.mark.parametrize("query", ["car", "automobiles", "Motor Vehicles"])
    def test_who_asks_for_one_finds_all(self, animals: Any, query: str) -> None:
        assert sorted(animals.find(query, mode="keyword", vocabulary=self.VOCABULARY)) == ["auto", "car", "lorry"]

    def test_a_synonym_covers_what_was_asked(self, animals: Any) -> None:
        found = animals.search("car", vocabulary=self.VOCABULARY, explain=True)
        stage = next(stage for stage in found.trace if stage.stage == "keyword")
        assert stage.facts["synonyms"] == {"car": ["automobil", "motor vehicl"]}

    def test_synonyms_of_more_words_than_are_looked_up_are_left_out_and_it_says_so(self, animals: Any) -> None:
        # In one group of thousands a long query of its words has millions.
        animals.settings = Settings(max_query_synonyms=3)
        assert list(animals.search("car", vocabulary=self.VOCABULARY).warnings) == []
        found = animals.search("car automobile", mode="keyword", vocabulary=self.VOCABULARY)
        assert sorted(passage.document_id for passage in found.passages) == ["auto", "car", "lorry"]
        assert [(notice.code, notice.extra) for notice in found.warnings] == [("synonyms_cut", {"limit": 3})]
        assert "FOOTNOTE_MAX_QUERY_SYNONYMS" in found.warnings[0].detail

    def test_stop_words_are_left_out_beside_others(self, animals: Any) -> None:
        assert animals.find("fence quick", mode="keyword", vocabulary=self.VOCABULARY) == animals.find(
            "quick", mode="keyword"
        )
        assert animals.find("fence", mode="keyword", vocabulary=self.VOCABULARY) != []


class TestMisspellings:
    @pytest.mark.parametrize("query", ["automobil", "automobiel", "utomobile", "automoobile", "autonobile"])
    def test_a_word_that_no_chunk_holds_finds_those_one_edit_away(self, animals: Any, query: str) -> None:
        assert animals.find(query, mode="keyword") == ["auto"]

    def test_what_was_taken_for_what_is_told(self, animals: Any) -> None:
        (warning,) = warned(animals, "red utomobile", mode="keyword")
        assert (warning.code, dict(warning.extra)) == ("fuzzy_match", {"word": "utomobile", "used": ["automobil"]})

    def test_short_words_known_words_and_words_far_away_are_left_alone(self, animals: Any) -> None:
        assert animals.find("caz", mode="keyword") == []
        assert animals.find("xutomobilx", mode="keyword") == []
        assert warned(animals, "quick", mode="keyword") == []

    def test_it_can_be_turned_off(self, animals: Any) -> None:
        assert animals.find("utomobile", mode="keyword", fuzzy=False) == []


class TestAsYouType:
    @pytest.mark.parametrize("query", ["au", "autom", "automobile", "waits at the au"])
    def test_the_last_word_is_only_begun(self, animals: Any, query: str) -> None:
        assert "auto" in animals.find(query, mode="keyword", as_you_type=True)

    def test_without_it_a_beginning_finds_nothing(self, animals: Any) -> None:
        assert animals.find("autom", mode="keyword", fuzzy=False) == []

    def test_a_word_longer_than_its_stem_is_met(self, shelf: Any) -> None:
        shelf.put("a", "they run and visit universities")
        assert shelf.find("runni", mode="keyword", as_you_type=True) == ["a"]
        assert shelf.find("universit", mode="keyword", as_you_type=True) == ["a"]

    def test_chinese_is_found_by_its_first_character(self, shelf: Any) -> None:
        shelf.put("a", "人工智能的发展")
        assert shelf.find("人工智", mode="keyword", as_you_type=True) == ["a"]

    @pytest.mark.parametrize("query", ["E12", "e1", "in 20", "ipv"])
    def test_a_word_with_digits_may_be_begun_too(self, shelf: Any, query: str) -> None:
        shelf.put("a", "error E1234 was seen in 2026 with IPv6")
        assert shelf.find(query, mode="keyword", as_you_type=True, fuzzy=False) == ["a"]

    def test_a_finished_word_is_no_beginning(self, animals: Any) -> None:
        assert animals.find("autom ", mode="keyword", as_you_type=True, fuzzy=False) != []
        assert animals.find("autom!", mode="keyword", as_you_type=True, fuzzy=False) == []


class TestLanguages:
    @pytest.fixture
    def mixed(self, shelf: Any) -> Any:
        shelf.put("de", "Die Katzen schliefen in den Häusern der Nachbarn", language="de")
        shelf.put("fr", "Les chevaux mangeaient des pommes délicieuses", language="fr")
        shelf.put("en", "The cats were sleeping in the houses of neighbours")
        return shelf

    @pytest.mark.parametrize(
        ("query", "document"),
        [("Katze im Haus", "de"), ("schlafende Katze", "de"), ("cheval mangeait pomme", "fr"), ("sleeps", "en")],
    )
    def test_words_are_stemmed_by_the_language_of_each_document(self, mixed: Any, query: str, document: str) -> None:
        assert mixed.find(query, mode="keyword")[0] == document

    def test_a_query_is_read_in_the_languages_of_the_most_documents(self, shelf: Any) -> None:
        for place, language in enumerate(("da", "de", "es", "fr", "sv", "sv")):
            shelf.put(f"{language}-{place}", "Hästarna springer", language=language)
        shelf.opened.catch_up()
        assert shelf.opened.languages() == ("sv", "da", "de", "es", "fr")
        assert set(shelf.find("hästen", mode="keyword", fuzzy=False)) == {"sv-4", "sv-5"}

    def test_a_language_of_few_documents_counts_where_the_query_tells_it(self, shelf: Any) -> None:
        for place, language in enumerate(("da", "de", "es", "fr") * 2):
            shelf.put(f"{language}-{place}", "Hästarna springer", language=language)
        shelf.put("sv", "Hästarna springer", language="sv")
        asked = {"mode": "keyword", "query_syntax": "simple", "highlight": True, "fuzzy": False, "top_k": 10}
        assert "sv" not in shelf.find("hästarnas", **asked)
        found = shelf.search('den "hästarnas" som är på', **asked).passages
        (passage,) = (each for each in found if each.document_id == "sv")
        assert [(span.start, span.end) for span in passage.highlights] == [(0, 8)]
        assert "sv" in shelf.find("springer som är på", **asked)
        assert "sv" not in shelf.find('springer som är på -"hästarnas"', **asked)

    def test_phrases_and_exclusions_are_read_in_each_language(self, mixed: Any) -> None:
        assert mixed.find('"den Haus" Katzen', mode="keyword", query_syntax="simple") == ["de"]
        assert "de" not in mixed.find("Katzen sleep -Haus", mode="keyword", query_syntax="simple")

    def test_a_document_that_changes_its_language_is_indexed_again(self, mixed: Any) -> None:
        assert mixed.find("Haus", mode="keyword", fuzzy=False) == ["de"]
        mixed.put("de", "Die Katzen schliefen in den Häusern der Nachbarn")
        assert mixed.find("Haus", mode="keyword", fuzzy=False) == []


class TestHighlights:
    def places(self, shelf: Any, query: str, **options: Any) -> list[list[str]]:
        found = shelf.search(query, highlight=True, **options).passages
        return [
            [passage.text[span.start - passage.start : span.end - passage.start] for span in passage.highlights]
            for passage in found
        ]

    def test_words_are_told_as_the_analyzer_understands_them(self, shelf: Any) -> None:
        shelf.put("a", "nothing here", "Runners run; the RUNNING fox of 北京大学 in 东京")
        assert self.places(shelf, "runs 北京", mode="keyword") == [["run", "RUNNING", "北京"]]

    def test_what_counted_as_a_word_is_told_too(self, animals: Any) -> None:
        vocabulary = Vocabulary(synonyms=(("car", "automobile"),))
        assert self.places(animals, "car", mode="keyword", vocabulary=vocabulary) == [["automobile"], ["car"]]
        assert self.places(animals, "utomobile", mode="keyword") == [["automobile"]]
        assert self.places(animals, "au", mode="keyword", as_you_type=True) == [["automobile"]]

    def test_dense_hits_are_marked_and_nothing_is_told_unasked(self, animals: Any) -> None:
        assert ["automobile"] in self.places(animals, "automobile", mode="dense")
        assert all(passage.highlights is None for passage in animals.search("car").passages)

    def test_places_count_from_the_beginning_of_the_document(self, shelf: Any) -> None:
        shelf.put("a", "one two three", "four five")
        (passage,) = shelf.search("five", mode="keyword", highlight=True).passages
        assert [(span.start, span.end) for span in passage.highlights] == [(19, 23)]


def test_a_plan_understands_all_of_it_by_default_but_no_syntax() -> None:
    plan = SearchPlan("a")
    assert (plan.query_syntax, plan.as_you_type, plan.fuzzy, plan.highlight) == (None, False, True, False)


def test_a_word_that_is_written_counts_in_full_though_another_is_taken_for_it(animals: Any) -> None:
    alone = animals.search("fence", mode="keyword").passages
    beside = animals.search("fence fense", mode="keyword").passages
    assert [(p.document_id, p.score) for p in beside] == [(p.document_id, p.score) for p in alone]
