"""The extractive answer is made of the sources' own sentences."""

from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.answering.extractive import MOST_SENTENCES, extract, rank_sentences
from app.errors import EmbeddingUnavailable

LEAVE = "Leave is for everybody. Each parent may take 320 working days of parental leave. The state pays."
PARENTS = "Each parent may take 320 working days of parental leave."
TRAVEL = "Travel expenses are paid within ten days.\nKeep every receipt, says rule [3]."


def test_the_sentence_that_answers_comes_first_with_its_marker(make_passage, make_evidence) -> None:
    evidence = make_evidence(make_passage(TRAVEL, "travel"), make_passage(LEAVE, "leave", start=50))
    ranking = rank_sentences("How many days of parental leave may a parent take?", evidence, {})
    text, citations = extract(evidence, ranking, weakest=1.2)
    assert text == "Each parent may take 320 working days of parental leave [2]."
    [citation] = citations
    assert citation.quote == PARENTS
    assert citation.start == 50 + LEAVE.index(PARENTS)
    assert (citation.end - citation.start, citation.marker, citation.verified) == (len(PARENTS), 2, True)
    assert text[citation.answer_start : citation.answer_end] == text


def test_words_of_the_title_count_for_every_sentence(make_passage, make_evidence) -> None:
    bare = make_evidence(make_passage("They may take 320 days."))
    titled = make_evidence(make_passage("They may take 320 days.", title="Parental leave"))
    question = "How many days of parental leave?"
    assert rank_sentences(question, titled, {}).strength > rank_sentences(question, bare, {}).strength


def test_a_heading_is_no_answer_but_counts_for_the_sentences_below_it(make_passage, make_evidence) -> None:
    text = "# Leave\n\n## Parental leave\n\nThe state pays 80 %.\n\n## Sick leave\n\nThe state pays nothing."
    evidence = make_evidence(make_passage(text, title="Leave"))
    ranking = rank_sentences("What does the state pay during parental leave?", evidence, {})
    assert {found.sentence.text for found in evidence.sentences} == {"The state pays 80 %.", "The state pays nothing."}
    assert evidence.sentences[ranking.sentences[0].place].sentence.text == "The state pays 80 %."
    assert ranking.sentences[0].strength > ranking.sentences[1].strength


def test_a_word_that_nearly_every_sentence_has_still_counts_for_it(
    make_passage, make_evidence, failing_embedder
) -> None:
    text = "Tea is free. The leave of Ann is long. The leave of Bob is long. The leave of Cid is long."
    evidence = make_evidence(make_passage(text), embedder=failing_embedder(EmbeddingUnavailable("no answer")))
    ranking = rank_sentences("leave", evidence, {})
    assert [ranked.place for ranked in ranking.sentences] == [1, 2, 3, 0]


def test_a_rare_term_of_the_collection_counts_more_than_a_common_one(make_passage, make_evidence) -> None:
    evidence = make_evidence(make_passage("The report is long. The zebra is old."))
    ranking = rank_sentences("zebra report", evidence, {"zebra": 6.0, "report": 0.5})
    report, zebra = sorted(ranking.sentences, key=lambda ranked: ranked.place)
    assert zebra.strength > 1.5 > report.strength


def test_the_same_sentence_in_two_documents_is_said_once(make_passage, make_evidence) -> None:
    evidence = make_evidence(make_passage(LEAVE, "one"), make_passage(LEAVE, "two"))
    _, citations = extract(evidence, rank_sentences("days of parental leave per parent", evidence, {}), weakest=0.0)
    assert len({citation.quote for citation in citations}) == len(citations)


def test_brackets_of_the_source_do_not_become_markers(make_passage, make_evidence) -> None:
    evidence = make_evidence(make_passage(TRAVEL))
    text, citations = extract(evidence, rank_sentences("keep receipt rule", evidence, {}), weakest=9)
    assert text == "Keep every receipt, says rule [1]."
    assert citations[0].quote == "Keep every receipt, says rule [3]."


def test_chinese_sentences_join_without_a_space(make_passage, make_evidence) -> None:
    evidence = make_evidence(make_passage("咖啡全天免费。茶水全天免费。会议室要预订。"))
    text, _ = extract(evidence, rank_sentences("咖啡和茶水免费吗？", evidence, {}), weakest=0.0)
    assert text == "咖啡全天免费[1]。茶水全天免费[1]。"


def test_without_an_embedder_words_rank(make_passage, make_evidence, failing_embedder) -> None:
    evidence = make_evidence(make_passage(LEAVE), embedder=failing_embedder(EmbeddingUnavailable("no answer")))
    ranking = rank_sentences("How many days of parental leave?", evidence, {})
    assert evidence.sentences[ranking.sentences[0].place].sentence.text == PARENTS
    assert [warning.code for warning in ranking.warnings] == ["embedding_unavailable"]


def test_sources_without_a_sentence_rank_nothing(make_passage, make_evidence) -> None:
    assert rank_sentences("anything", make_evidence(make_passage("— [1] —")), {}).sentences == ()
    assert rank_sentences("anything", make_evidence(), {}).strength == 0


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    question=st.text(min_size=1, max_size=40),
    texts=st.lists(st.text(alphabet="ab c1.。!\n[]|猫狗#-", min_size=1, max_size=120), min_size=1, max_size=4),
)
def test_every_extract_quotes_exactly_and_its_spans_tile_the_answer(question, texts, make_passage, make_evidence):
    evidence = make_evidence(*(make_passage(text, str(n), start=7 * n) for n, text in enumerate(texts)))
    ranking = rank_sentences(question, evidence, {})
    if not ranking.sentences:
        return
    text, citations = extract(evidence, ranking, weakest=0.0)
    assert 1 <= len(citations) <= MOST_SENTENCES
    for citation in citations:
        source = evidence.sources[citation.marker - 1]
        assert citation.quote == source.text[citation.start - source.start : citation.end - source.start]
        assert f"[{citation.marker}]" in text[citation.answer_start : citation.answer_end]
    spans = [(citation.answer_start, citation.answer_end) for citation in citations]
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    assert all(text[one[1] : two[0]].strip() == "" for one, two in pairwise(spans))


MAIL = (
    "From: Ann Lee <ann@example.org>\nTo: All staff <staff@example.org>\nSubject: Water off on Friday\n"
    "Date: Mon, 2 Mar 2026 09:00:00 +0000\n\nThe water is turned off on Friday, 6 March 2026, from eight to noon."
)


def test_the_date_that_a_mail_was_sent_on_is_not_the_date_that_it_tells_of(make_passage, make_evidence) -> None:
    evidence = make_evidence(make_passage(MAIL, title="Water off on Friday"))
    text, _ = extract(evidence, rank_sentences("On what date is the water off?", evidence, {}), weakest=0.0)
    assert text == "The water is turned off on Friday, 6 March 2026, from eight to noon [1]."


def test_a_question_about_the_mail_is_answered_by_its_headers(make_passage, make_evidence) -> None:
    evidence = make_evidence(make_passage(MAIL, title="Water off on Friday"))
    for question, header in (("From whom was the mail sent?", "From:"), ("发件人是谁? From", "From:")):
        text, _ = extract(evidence, rank_sentences(question, evidence, {}), weakest=9)
        assert text.startswith(header)


def test_a_mail_of_headers_alone_still_answers(make_passage, make_evidence) -> None:
    evidence = make_evidence(make_passage(MAIL.partition("\n\n")[0]))
    text, _ = extract(evidence, rank_sentences("Is the water off on Friday?", evidence, {}), weakest=9)
    assert text.startswith("Subject: Water off")


def test_fields_of_a_note_that_is_no_mail_answer(make_passage, make_evidence) -> None:
    evidence = make_evidence(make_passage("Date: 6 March 2026\nPlace: the hall\n\nAll are welcome."))
    text, _ = extract(evidence, rank_sentences("What is the date?", evidence, {}), weakest=9)
    assert text.startswith("Date: 6 March 2026")
