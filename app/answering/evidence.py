"""Measure how well the sources' sentences support a question or a claim: by words and by meaning."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.answering.mail_headers import header_blocks
from app.answering.markers import without_markers
from app.answering.sentences import Sentence, script, split_sentences
from app.domain import Passage
from app.indexes.analysis import Analyzer
from app.inference.port import Embedder
from app.retrieval.keyword import covered, inverse_document_frequency

BACKGROUND = {
    "other": (
        "The recipe needs two cups of flour and a pinch of salt.",
        "The train to the coast leaves every hour from platform four.",
        "Quarterly revenue rose while operating costs fell.",
        "The patient was given antibiotics after the operation.",
        "Click the button to save your changes and close the window.",
        "The river floods its banks in early spring.",
        "He scored twice in the second half of the match.",
        "The treaty was signed by both kings after the war.",
    ),
    "cjk": (
        "把面粉和水混合，揉成光滑的面团。",
        "列车每小时从四号站台开出。",
        "第三季度的收入有所增长。",
        "手术后病人服用了抗生素。",
        "点击按钮保存更改并关闭窗口。",
        "这条河在早春时常泛滥。",
        "他在下半场攻入两球。",
        "战争结束后两国签订了条约。",
    ),
}
"""Sentences of no common subject. What a text's cosine with these is on average, unrelated texts have in this space."""


@dataclass(frozen=True, slots=True)
class SourceSentence:
    """A sentence of a source; its offsets are those in the source's text.

    `context` is the source's title and headings and the heading above the sentence, `context_terms` their terms.
    `is_header` tells the lines of a mail that say who sent it to whom and when.
    """

    source: int
    sentence: Sentence
    terms: tuple[str, ...]
    context: str
    context_terms: tuple[str, ...]
    is_header: bool = False


class Evidence:
    """The sentences of one request's sources with their terms, and their vectors once they are asked for.

    Headings are no sentences: they share the question's words and answer nothing.
    """

    def __init__(self, sources: Sequence[Passage], analyzer: Analyzer, embedder: Embedder) -> None:
        self.sources = tuple(sources)
        self.analyzer = analyzer
        self.sentences = tuple(
            sentence for place, source in enumerate(sources) for sentence in _sentences(place, source, analyzer)
        )
        self._embedder = embedder
        self._vectors: dict[int, NDArray[np.float32]] = {}

    def narrowed_to(self, sources: Sequence[Passage]) -> "Evidence":
        """Return the evidence of these sources, the first of the present ones or beginnings of them."""
        return self if tuple(sources) == self.sources else Evidence(sources, self.analyzer, self._embedder)

    def of_source(self, source: int) -> list[int]:
        """Return the places of a source's sentences, in order."""
        return [place for place, sentence in enumerate(self.sentences) if sentence.source == source]

    def weights(self, terms: Iterable[str]) -> dict[str, float]:
        """Return each distinct term's inverse document frequency among the sentences."""
        return {
            term: inverse_document_frequency(
                sum(term in sentence.terms for sentence in self.sentences), len(self.sentences)
            )
            for term in dict.fromkeys(terms)
        }

    def coverage(self, weights: Mapping[str, float], windows: Iterable[Sequence[int]]) -> NDArray[np.float64]:
        """Return for each window of sentences which share of the terms' weight they hold together."""
        return np.array(
            [covered(weights, (term for place in window for term in self.sentences[place].terms)) for window in windows]
        )

    def coverage_in_context(self, weights: Mapping[str, float], places: Iterable[int]) -> NDArray[np.float64]:
        """Return for each sentence which share of the terms' weight it holds with its title and headings."""
        sentences = [self.sentences[place] for place in places]
        return np.array([covered(weights, (*sentence.terms, *sentence.context_terms)) for sentence in sentences])

    def question_cosines(self, question: str, places: Sequence[int]) -> NDArray[np.float64]:
        """Return each sentence's relative cosine with a question; raises what the embedder raises."""
        return self._relative_cosines(self._embedder.embed_queries([question])[0], places)

    def claim_cosines(self, claim: str, places: Sequence[int]) -> NDArray[np.float64]:
        """Return each sentence's relative cosine with a statement; raises what the embedder raises."""
        return self._relative_cosines(self._embedder.embed_passages([claim])[0], places)

    def _relative_cosines(self, vector: NDArray[np.float32], places: Sequence[int]) -> NDArray[np.float64]:
        """Return `(cosine - background) / (1 - background)`: 0 for unrelated texts and 1 for equal ones in any space.

        The background is of the sentence's script, since a model finds texts of one language alike.
        """
        missing = [place for place in places if place not in self._vectors]
        if missing:
            sentences = [self.sentences[place] for place in missing]
            texts = [f"{each.context}\n{each.sentence.text}".strip() for each in sentences]
            self._vectors.update(zip(missing, self._embedder.embed_passages(texts), strict=True))
        backgrounds = {
            script: float(np.mean(self._embedder.embed_passages(texts) @ vector))
            for script, texts in BACKGROUND.items()
        }
        relative = []
        for place in places:
            floor = backgrounds[script(self.sentences[place].sentence.text)]
            relative.append((float(self._vectors[place] @ vector) - floor) / (1 - floor))
        return np.array(relative)


def _sentences(place: int, source: Passage, analyzer: Analyzer) -> Iterator[SourceSentence]:
    headings: list[str] = []
    context = ""
    terms: tuple[str, ...] = ()
    was_found: bool | None = None
    headers = list(header_blocks(source.text))
    for sentence in split_sentences(source.text):
        is_found = source.hit is None or source.hit.start <= source.start + sentence.start < source.hit.end
        if is_found is not was_found:
            # The headings of the hit are not those of what stands around it.
            headings = _headings(source.title, *(source.heading_path if is_found else ()))
            context = " ".join(headings)
            terms = tuple(analyzer.terms(context))
            was_found = is_found
        plain = without_markers(sentence.text)
        if plain in headings or source.text[: sentence.start].endswith("# "):
            context = " ".join((*(heading for heading in headings if heading != plain), plain))
            terms = tuple(analyzer.terms(context))
        elif any(character.isalnum() for character in plain):
            is_header = any(start <= sentence.start < end for start, end in headers)
            yield SourceSentence(place, sentence, tuple(analyzer.terms(sentence.text)), context, terms, is_header)


def _headings(*names: str) -> list[str]:
    return list(dict.fromkeys(" ".join(name.split()) for name in names))
