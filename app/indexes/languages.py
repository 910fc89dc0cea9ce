"""Languages: the stemmer of each, the words that tell it from others, and which of them a text is in."""

import re
from collections import Counter
from collections.abc import Collection, Mapping

from app.indexes.stop_words import STOP_WORDS

STEMMERS: Mapping[str, str] = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "nb": "norwegian",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
"""Snowball's algorithm for each ISO 639-1 code."""

FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "ca": "el la els les de del dels i a en que amb per és un una al als no es més però com són ha seva aquest",
        "cs": "a se v na je že o s z do i to k ve pro za by ale si po jako od byl jsou které který není jeho nebo při",
        "da": "og i at det en den til er som på de med han af for ikke der var et har om jeg vi men efter eller blev",
        "de": (
            "der die das und ist in den von zu mit des auf für im dem nicht ein eine als auch es an werden aus er hat "
            "dass sie nach bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis "
            "mehr durch man sein wurde sei wird wenn kann was welche wer wo gegen vom ich wir ihr"
        ),
        "es": (
            "de la que el en y a los del se las por un para con no una su al lo como más pero sus le ya o este sí "
            "porque esta entre cuando muy sin sobre también me hasta hay donde quien desde todo nos es son fue era ser "
            "qué cuál cuáles cómo dónde"
        ),
        "et": "ja on ei et see kui oli ka mis oma aga ning või siis tema ta kes seda mida pole nii nagu veel olid",
        "fi": "ja on ei että se oli ovat hän mutta joka kun myös tai sekä olla niin kuin mitä hänen jos sen ole vain",
        "fr": (
            "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont la avec son "
            "aux d'un cette d'une ont ses mais comme on tout nous sa fait été aussi leur bien peut ces y deux elle ou "
            "être quel quelle quels quelles où était"
        ),
        "hu": "a az és hogy nem is egy ez meg volt van csak de ha mint még már el vagy ami azt ezt után lehet kell",
        "id": "yang dan di itu dengan untuk tidak ini dari dalam akan pada juga saya ke karena tersebut bisa ada oleh",
        "it": (
            "di e il la che in a per un è del non una i le si con da come dei nel alla più sono ma al della anche gli "
            "delle lo ha se o nella suo ci questo cui dal sua essere era loro tra dalla quale quali dove chi"
        ),
        "lt": "ir yra kad iš su tai kaip bet į o po buvo jis nuo ar tik dar jo už jau apie savo dėl kuris per kai",
        "nl": (
            "de van het een en in is dat op te zijn met voor niet aan er om ook als maar bij of uit nog door naar dan "
            "heeft ze wordt tot over deze worden hij was werd wel geen wat hoe wie waar welke kan meer"
        ),
        "no": "og i det er på til som en å for av at har med de ikke den var et om han men fra vi jeg ble seg eller",
        "pl": "w i na z się nie do to że jest o jak od za po przez dla ale co są czy tym oraz jego było był która",
        "pt": (
            "de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das tem à seu "
            "sua ou ser quando muito há nos já está eu também só pelo pela até isso são qual quais onde quem"
        ),
        "ro": "de și în a la cu o pe că un din nu care este sunt se mai pentru o au ca fost prin lui sau dar după",
        "sv": "och i att det som en på är av för med till den har de inte om ett han men var jag från vi så kan när",
        "tr": "ve bir bu için de da ile olarak daha çok en gibi olan ne kadar ama sonra var değil mi her ya o ise",
    }.items()
} | {"en": STOP_WORDS}
"""Words without a subject of their own, in languages of Latin script, where letters alone do not tell the stemmer."""

MOST_READ = 20_000
"""Characters from which a document's language is told: more change nothing."""

LEAST_WORDS = 4
"""Different function words that a document must hold: one name may hold two of a language, many times."""

LEAST_SHARE = 0.08
"""Their least share of its words: lists and tables have fewer, and no language that stems would help."""

LEAD = 1.25
"""How many times as many votes the language must have as the next."""

DEFAULT_LANGUAGE = "en"
"""The language by which a text of Latin script is stemmed that tells no other."""

_DEFAULT = frozenset(("ar", "el", "en", "hi", "hy", "ru", "ta"))
"""Languages whose stemmer every text of their script has by default."""

_SHARES = {
    word: tuple(language for language, words in FUNCTION_WORDS.items() if word in words)
    for word in frozenset().union(*FUNCTION_WORDS.values())
}
"""The languages of each function word."""

_AFTER_LATIN = "\u0250"
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")


def detect_language(text: str) -> str | None:
    """Return the ISO 639-1 code of the language that a document is in, `None` where its words do not tell.

    Only languages of Latin script are told apart: others have one stemmer for their script.
    """
    words = _WORD.findall(text[:MOST_READ].casefold())
    if 2 * sum(len(word) for word in words if word < _AFTER_LATIN) < sum(map(len, words)):
        return None
    counts = Counter(words)
    best = _clear_winner(_votes(counts, FUNCTION_WORDS), LEAD)
    if best is None:
        return None
    held = FUNCTION_WORDS[best] & counts.keys()
    share = sum(counts[word] for word in held) / len(words)
    return best if len(held) >= LEAST_WORDS and share >= LEAST_SHARE else None


def stemmed_language(language: str) -> str | None:
    """Return the code of a language that needs a stemmer other than its script's default one, from `de-AT` too."""
    code = language.casefold().replace("_", "-").split("-")[0]
    return code if code in STEMMERS and code not in _DEFAULT else None


def is_language(code: str) -> bool:
    """Return whether there is a stemmer for the code, or none is needed."""
    return re.fullmatch(r"[A-Za-z]{2}(?:[-_].*)?", code) is not None


def query_language(query: str, languages: Collection[str]) -> str | None:
    """Return which of the languages most of a query's function words are of; `None` where two have as many, or none."""
    return _clear_winner(_votes(Counter(_WORD.findall(query.casefold())), languages), 1.0)


def _votes(counts: Counter[str], languages: Collection[str]) -> dict[str, float]:
    """Return how many words vote for each language; a word of several gives each a part of its vote."""
    votes: dict[str, float] = dict.fromkeys(languages, 0.0)
    for word in counts.keys() & _SHARES.keys():
        for language in _SHARES[word]:
            if language in votes:
                votes[language] += counts[word] / len(_SHARES[word])
    return votes


def _clear_winner(votes: Mapping[str, float], lead: float) -> str | None:
    ranked = sorted(votes, key=votes.__getitem__, reverse=True)[:2]
    if not ranked or not votes[ranked[0]]:
        return None
    if len(ranked) == 2 and votes[ranked[0]] <= lead * votes[ranked[1]]:
        return None
    return ranked[0]
