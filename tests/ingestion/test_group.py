import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain import ChunkingOptions, Extraction, Heading
from app.inference.embedders.hashed import HashedEmbedder
from app.inference.port import TokenCounterSpec
from app.ingestion.chunkers.sentences import chunk_by_sentences
from app.ingestion.group import join_sentences, joined, neighbour_similarities
from app.ingestion.port import Prepared

SHIPS = "The ship left the harbour at dawn. The sailors raised the sails of the ship. The harbour was behind the ship. "
BREAD = "Bread needs flour and water. The baker kneads flour with water. The dough of the bread rests in water. "


def by_words(text):
    return 4 + sum(-(-len(word) // 3) if word.isascii() else len(word) for word in text.split())


def extraction_of(text, headings=()):
    return Extraction(text=text, parser="text", media_type="text/plain", source_type="text", headings=tuple(headings))


def embed(sentences):
    return HashedEmbedder().embed_passages([sentence.text for sentence in sentences])


def topics(sentences):
    return np.array([[1, 0] if "ship" in one.text or "harbour" in one.text else [0, 1] for one in sentences], "f4")


@pytest.fixture
def join(request_for, tmp_path):
    def run(extraction, embed, **options):
        chunking = ChunkingOptions(strategy="semantic", **options)
        request = request_for(tmp_path / "a.txt", chunking=chunking, token_counter=TokenCounterSpec("estimate"))
        sentences = tuple(chunk_by_sentences(extraction, chunking, by_words, 512))
        return join_sentences(Prepared(extraction, sentences, {}), request, embed).chunks

    return run


@pytest.mark.parametrize("options", [{"threshold": 0.4}, {"percentile": 75.0}])
def test_a_cut_is_where_the_meaning_drops(join, options):
    chunks = join(extraction_of(SHIPS + BREAD), topics, size=200, **options)
    assert [chunk.text for chunk in chunks] == [SHIPS.strip(), BREAD.strip()]
    assert {chunk.context for chunk in chunks} == {"a.txt"}


def test_a_group_above_the_size_is_cut_at_its_lowest_similarity(join):
    text = SHIPS * 4 + BREAD * 4
    chunks = join(extraction_of(text), topics, size=500, threshold=-1.0)
    assert all(len(chunk.text) <= 500 for chunk in chunks)
    assert not any("ship" in chunk.text and "flour" in chunk.text for chunk in chunks)


def test_a_chunk_stays_inside_its_section(join):
    text = "Ships\n\n" + SHIPS + "\n\nMore ships\n\n" + SHIPS
    headings = [Heading(1, "Ships", 0), Heading(1, "More ships", text.index("More ships"))]
    chunks = join(extraction_of(text, headings), topics, size=150, threshold=-1.0)
    assert [chunk.heading_path for chunk in chunks] == [("Ships",), ("More ships",)]


def test_a_short_document_asks_no_model(join):
    def refuse(sentences):
        raise AssertionError

    assert len(join(extraction_of(SHIPS), refuse, size=1200)) == 1


def test_every_gap_of_equal_sentences_is_alike():
    vectors = np.tile(np.array([[0.6, 0.8]], "f4"), (5, 1))
    assert neighbour_similarities(vectors) == pytest.approx([1.0] * 4)


FRAGMENTS = st.sampled_from(
    ["A sentence about ships. ", "Bread! ", "今天讨论了部署方案。", "👩‍👩‍👧 ", "e\u0301 ", "\n\n", "word " * 9]
)


@settings(deadline=None, max_examples=60)
@given(text=st.lists(FRAGMENTS, max_size=60).map("".join), size=st.integers(1, 300), percentile=st.floats(1, 99))
def test_groups_are_exact_disjoint_within_the_size_and_leave_nothing_out(text, size, percentile):
    extraction = extraction_of(text)
    options = ChunkingOptions(strategy="semantic", size=size, percentile=percentile)
    sentences = list(chunk_by_sentences(extraction, options, by_words, 512))
    if len(sentences) < 2:
        return
    similarities = neighbour_similarities(embed(sentences))
    covered = 0
    for piece, _ in joined(text, sentences, similarities, options, by_words, 512):
        assert not text[covered : piece.start].strip()
        assert piece.end - piece.start <= size
        assert piece.tokens == by_words(text[piece.start : piece.end]) - 4
        covered = piece.end
    assert not text[covered:].strip()
