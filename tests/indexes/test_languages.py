import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.indexes.analysis import stop_words_of
from app.indexes.languages import (
    FUNCTION_WORDS,
    STEMMERS,
    detect_language,
    is_language,
    query_language,
    stemmed_language,
)

SENTENCES = {
    "de": "Die Bundesregierung hat gestern ein neues Gesetz beschlossen, das ab dem nächsten Jahr für alle gilt.",
    "fr": "Le gouvernement a présenté hier un nouveau projet de loi pour la protection de l'environnement.",
    "es": "El gobierno presentó ayer un nuevo proyecto de ley para la protección del medio ambiente en el país.",
    "it": "Il governo ha presentato ieri un nuovo disegno di legge per la protezione dell'ambiente nel paese.",
    "pt": "O governo apresentou ontem um novo projeto de lei para a proteção do meio ambiente no país.",
    "nl": "De regering heeft gisteren een nieuw wetsvoorstel voor de bescherming van het milieu ingediend.",
    "sv": "Regeringen lade i går fram ett nytt lagförslag för att skydda miljön i landet och för att minska utsläppen.",
    "da": "Regeringen fremlagde i går et nyt lovforslag til beskyttelse af miljøet i landet, og det er godt for os.",
    "pl": "Rząd przedstawił wczoraj projekt ustawy o ochronie środowiska, który jest ważny dla kraju i nie tylko.",
    "fi": "Hallitus esitti eilen uuden lain, ja se on tärkeä koko maalle, mutta ei kaikille, joka ei ole hyvä.",
    "ro": "Guvernul a prezentat ieri un nou proiect de lege pentru protecția mediului în țară și în regiune.",
    "tr": "Hükümet dün çevrenin korunması için yeni bir yasa tasarısı sundu ve bu çok önemli bir adım oldu.",
    "en": "The government presented a new bill for the protection of the environment, and it is good for all of us.",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_tells_its_language(language):
    assert detect_language(SENTENCES[language]) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "42",
        "政府昨天提出了新的法案。",
        "Правительство вчера представило новый законопроект.",
        "Los Angeles Rams, Los Angeles Chargers, San Diego; Los Angeles Lakers, Los Angeles Clippers",
        "invoice 2024-01-17 total 1,200.00 EUR",
        "这 the 是 a 新 of 闻 and 关 in 于 机 器 学 习 的 文 章 内 容 很 长",
    ],
)
def test_what_does_not_tell_is_nobodys(text):
    assert detect_language(text) is None


@given(st.text(max_size=300))
def test_any_text_has_one_language_or_none(text):
    assert detect_language(text) in {None, *FUNCTION_WORDS}


def test_a_query_is_in_the_language_of_its_function_words():
    assert query_language("wo sind die Katzen", ("en", "de")) == "de"
    assert query_language("where are the cats", ("en", "de")) == "en"
    assert query_language("cats", ("en", "de")) is None
    assert query_language("wo sind die Katzen", ("en", "fr")) is None


def test_only_what_needs_another_stemmer_is_kept():
    assert stemmed_language("de-AT") == stemmed_language("DE") == "de"
    assert stemmed_language("en") is stemmed_language("zh") is stemmed_language("ru") is None


def test_codes_are_told_from_words():
    assert is_language("de")
    assert is_language("pt_BR")
    assert not is_language("german")
    assert not is_language("")


def test_every_language_that_is_told_has_a_stemmer_and_folded_stop_words():
    assert set(FUNCTION_WORDS) <= set(STEMMERS)
    assert "fur" in stop_words_of("de")
    assert stop_words_of(None) == stop_words_of("en")
