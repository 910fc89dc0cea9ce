"""The keyword index ranks as rank-bm25 does; what differs is the formula's variant and how lengths are kept."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rank_bm25 import BM25Okapi, BM25Plus

from app.indexes.analysis import Analyzer
from app.indexes.port import IndexEntry
from app.indexes.registry import create_index
from app.stores.port import Scope

SCIFACT = Path(__file__).parents[3] / "shared" / "data" / "scifact"
QUERIES = 100

PASSAGES = (
    "Each parent may take 320 working days of parental leave.",
    "Parental leave is paid by the insurance, not by the employer.",
    "Sick leave of more than three days needs a doctor's certificate.",
    "Employees who travel by train are paid the second class.",
    "The working week has 38 hours; overtime is paid or taken as leave.",
    "Unpaid leave is granted by the head of the department.",
    "假期由部门负责人批准。",
    "每位家长可以休320个工作日的育儿假。",
    "The office is closed on public holidays.",
    "Doctors and nurses work in shifts of eight hours.",
    "A certificate of the insurance is needed for every journey abroad.",
    "Parents of sick children may work from home.",
)
QUESTIONS = (
    "parental leave days",
    "who is paid for overtime",
    "sick certificate",
    "育儿假工作日",
    "travelling insurance",
)


class AsTantivy(BM25Okapi):
    """rank-bm25 with Lucene's idf, which is never negative, and lengths of one byte, as tantivy keeps them."""

    def __init__(self, corpus: Sequence[Sequence[str]]) -> None:
        super().__init__(corpus, k1=1.2, b=0.75)
        self.doc_len = [one_byte(length) for length in self.doc_len]

    def _calc_idf(self, nd: dict[str, int]) -> None:
        self.idf = {word: math.log(1 + (self.corpus_size - n + 0.5) / (n + 0.5)) for word, n in nd.items()}


def one_byte(length: int) -> int:
    """Return the length that is left of one: exact below 40, then four binary digits of what is above 24."""
    if length < 40:
        return length
    shift = (length - 24).bit_length() - 4
    return ((length - 24) >> shift << shift) + 24


def agreement(
    folder: Path, texts: Sequence[str], queries: Sequence[str], reference: type[BM25Okapi], top: int
) -> float:
    """Return the mean share of the first `top` hits, as sets, that the index and rank-bm25 have in common."""
    analyzer = Analyzer()
    terms = [analyzer.terms(text) for text in texts]
    index = create_index(folder, analyzer.signature).keyword
    with index.writing() as granted:
        assert granted
        nothing = np.zeros(0, np.float32)
        index.replace([[IndexEntry(key, key, each, nothing) for key, each in enumerate(terms)]], revision=1)
    model = reference(terms) if reference is AsTantivy else reference(terms, k1=1.2, b=0.75)
    shares = []
    for query in queries:
        asked = analyzer.query_terms(query)
        found = set(index.search(asked, top, Scope(None, None)).keys.tolist())
        expected = set(np.argsort(-model.get_scores(asked), kind="stable")[: len(found)].tolist())
        shares.append(len(found & expected) / max(1, len(found)))
    return float(np.mean(shares))


@pytest.mark.parametrize("reference", [BM25Plus, AsTantivy])
def test_a_small_collection_is_ranked_alike(tmp_path: Path, reference: type[BM25Okapi]) -> None:
    assert agreement(tmp_path, PASSAGES, QUESTIONS, reference, 3) == 1


@pytest.mark.skipif(not SCIFACT.is_dir(), reason="the data sets are not here")
@pytest.mark.parametrize(("reference", "least"), [(BM25Plus, 0.97), (AsTantivy, 0.999)])
def test_scifact_is_ranked_alike_and_the_variant_explains_the_rest(
    tmp_path: Path, reference: type[BM25Okapi], least: float
) -> None:
    rows = [json.loads(line) for line in (SCIFACT / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    asked = [json.loads(line)["text"] for line in (SCIFACT / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = [f"{row.get('title') or ''} {row['text']}".strip() for row in rows]
    assert agreement(tmp_path, texts, asked[:QUERIES], reference, 10) >= least
