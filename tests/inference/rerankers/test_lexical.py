import pytest

from app.indexes.analysis import Analyzer
from app.inference.rerankers.lexical import LexicalReranker
from app.inference.rerankers.vocabulary import Vocabulary

_analyzer = Analyzer()


def scores(weights: dict[str, float], texts: list[str]) -> list[float]:
    reranker = LexicalReranker(Vocabulary(weights, _analyzer.terms, _analyzer.terms_with_offsets))
    return reranker.scores("unused", texts, timeout_seconds=1).tolist()


def test_the_collection_s_weights_decide_not_those_of_the_few_texts():
    """Among these texts `heron` is common and `report` rare; in the collection it is the other way round."""
    texts = ["heron lake", "heron pond", "heron reed", "report page"]
    found = scores({"heron": 5.0, "report": 0.1}, texts)
    assert min(found[:3]) > found[3] > 0


def test_the_score_is_bm25_as_a_share_of_the_most_there_could_be():
    """One occurrence in a text of average length: idf * 1 * (k1 + 1) / (1 + k1), of idf * (k1 + 1)."""
    assert scores({"heron": 3.0}, ["heron lake", "other words"]) == pytest.approx([1 / 2.2, 0])


def test_a_term_that_the_collection_lacks_keeps_the_score_low():
    known, unknown = scores({"heron": 2.0}, ["heron lake"])[0], scores({"heron": 2.0, "carrot": 9.0}, ["heron lake"])[0]
    assert unknown < known / 4


@pytest.mark.parametrize("texts", [[], [""], ["", "?!"]])
def test_nothing_to_compare_scores_nothing(texts):
    assert scores({"heron": 1.0}, texts) == [0.0] * len(texts)
    assert scores({}, texts) == [0.0] * len(texts)


def test_a_shorter_text_with_the_same_words_scores_higher():
    long, short = scores({"heron": 1.0}, ["heron " + "filler " * 200, "heron lake"])
    assert short > long
