"""Every citation is an exact piece of its source, and says whether the piece holds what is claimed."""

from app.answering.citations import check_citations
from app.errors import EmbeddingUnavailable

LEAVE = "Leave is for everybody. Each parent may take 320 working days. It is paid by the state."
TRAVEL = "Travel expenses are paid within 10 days. Keep every receipt."
COFFEE = "咖啡和茶对所有人免费。会议室需要预订。"


def test_a_marker_names_its_source_and_an_invented_one_is_counted(make_passage, make_evidence) -> None:
    evidence = make_evidence(make_passage("A.", "one"), make_passage("B.", "two"), make_passage("C.", "three"))
    checked = check_citations("A [2]. B [9].", evidence)
    assert (checked.text, checked.invalid) == ("A [2]. B.", 1)
    assert [(citation.marker, citation.document_id) for citation in checked.citations] == [(2, "two")]


def test_a_quote_is_the_supporting_sentence_by_its_offsets_in_the_document(make_passage, make_evidence) -> None:
    document = "Preface.\n\n" + LEAVE
    evidence = make_evidence(make_passage(TRAVEL, "travel"), make_passage(LEAVE, "leave", start=10))
    text = "You get much. Each parent may take 320 days [2]."
    [citation] = check_citations(text, evidence).citations
    assert citation.quote == "Each parent may take 320 working days."
    assert citation.quote == document[citation.start : citation.end]
    assert text[citation.answer_start : citation.answer_end] == "Each parent may take 320 days [2]."
    assert (citation.document_id, citation.chunk_id, citation.verified) == ("leave", "leave-10", True)


def test_a_claim_that_two_sentences_support_quotes_both(make_passage, make_evidence) -> None:
    evidence = make_evidence(make_passage("Ann leads the team. She was born in Riga. Tea is free."))
    [citation] = check_citations("Ann leads the team and was born in Riga [1].", evidence).citations
    assert citation.quote == "Ann leads the team. She was born in Riga."
    assert citation.verified


def test_the_page_is_the_passages_own_and_absent_for_a_text(make_passage, make_evidence) -> None:
    evidence = make_evidence(make_passage(TRAVEL, "text"), make_passage(LEAVE, "pdf", page=4))
    checked = check_citations("Travel is paid within 10 days [1]. Leave is for everybody [2].", evidence)
    assert [(citation.document_id, citation.page) for citation in checked.citations] == [("text", None), ("pdf", 4)]


def test_what_the_source_does_not_say_is_not_verified(make_passage, make_evidence) -> None:
    evidence = make_evidence(make_passage(LEAVE), make_passage(TRAVEL))
    for claim in (
        "Each parent may take 480 working days [1].",
        "The canteen closes on Mondays [1].",
        "Paid [2]. 99 [1]",
    ):
        assert not check_citations(claim, evidence).citations[-1].verified, claim


def test_claims_of_one_sentence_are_checked_one_by_one(make_passage, make_evidence) -> None:
    evidence = make_evidence(make_passage(LEAVE), make_passage(TRAVEL), make_passage(COFFEE))
    text = "Parents may take 320 days [1], expenses are paid within 10 days [2] and rockets are red [1]."
    assert [citation.verified for citation in check_citations(text, evidence).citations] == [True, True, False]


def test_chinese_is_quoted_by_its_own_sentences(make_passage, make_evidence) -> None:
    evidence = make_evidence(make_passage(COFFEE, "zh", start=100))
    [citation] = check_citations("咖啡对所有人免费［１］。", evidence).citations
    assert (citation.quote, citation.start, citation.end) == ("咖啡和茶对所有人免费。", 100, 111)
    assert citation.verified


def test_without_an_embedder_words_decide_and_the_answer_says_so(make_passage, make_evidence, failing_embedder) -> None:
    embedder = failing_embedder(EmbeddingUnavailable("no answer"))
    evidence = make_evidence(make_passage(LEAVE), embedder=embedder)
    checked = check_citations("Each parent may take 320 working days [1]. Rockets are red [1].", evidence)
    assert [citation.verified for citation in checked.citations] == [True, False]
    assert [warning.code for warning in checked.warnings] == ["embedding_unavailable"]


def test_a_source_without_a_sentence_is_quoted_whole_and_verifies_nothing(make_passage, make_evidence) -> None:
    [citation] = check_citations("It is so [1].", make_evidence(make_passage("— * —", start=3))).citations
    assert (citation.quote, citation.start, citation.end, citation.verified) == ("— * —", 3, 8, False)


def test_an_answer_without_markers_has_no_citations(make_passage, make_evidence) -> None:
    checked = check_citations("Use `a[1]`.", make_evidence(make_passage(LEAVE)))
    assert (checked.text, checked.citations, checked.invalid) == ("Use `a[1]`.", (), 0)
