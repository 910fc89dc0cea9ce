"""From a question to a cited answer, by extraction and by a language model, or to an honest no."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from app.answering.prompts import NO_ANSWER
from app.domain import Notice, PassageContext
from app.errors import EmbeddingUnavailable, LanguageModelUnavailable, UpstreamAuthentication, UpstreamRejected
from app.retrieval.search import SearchResult

LEAVE = "Leave is for everybody. Each parent may take 320 working days of parental leave. The state pays."
TRAVEL = "Travel expenses are paid within ten days. Keep every receipt."
QUESTION = "How many working days of parental leave may each parent take?"


@pytest.fixture
def sources(make_passage):
    return (make_passage(LEAVE, "leave", start=10, page=4), make_passage(TRAVEL, "travel"))


def test_without_a_language_model_the_answer_is_extracted_and_cited(asks, sources) -> None:
    answer = asks(QUESTION, *sources)
    assert answer.text == "Each parent may take 320 working days of parental leave [1]."
    assert (answer.answered, answer.reason, answer.model, answer.invalid_citations) == (True, None, "extractive", 0)
    [citation] = answer.citations
    assert citation.quote == LEAVE[citation.start - 10 : citation.end - 10]
    assert (citation.page, citation.verified) == (4, True)
    assert answer.sources == sources
    assert (answer.prompt_tokens, answer.completion_tokens) == (0, 0)
    assert answer.standalone_question == QUESTION
    assert set(answer.timings_ms) == {"search", "evidence", "extract", "total"}


@pytest.mark.parametrize("abstain", [True, False])
def test_no_passage_is_no_evidence(asks, scripted, abstain) -> None:
    model = scripted("Made up.")
    for chosen in (None, model):
        answer = asks(QUESTION, model=chosen, abstain=abstain)
        assert (answer.answered, answer.reason, answer.citations, answer.sources) == (False, "no_evidence", (), ())
        assert answer.text == "The sources do not answer this question."
    assert model.asked == []


def test_a_question_of_another_subject_calls_no_model_and_shows_the_closest_passages(asks, scripted, sources) -> None:
    model = scripted("Mars has no life [1].")
    for chosen in (None, model):
        answer = asks("Does Mars have life?", *sources, model=chosen)
        assert (answer.answered, answer.reason, answer.sources) == (False, "no_evidence", sources)
    assert model.asked == []
    assert answer.model == "scripted"


def test_a_caller_who_wants_no_abstaining_gets_the_closest_sentence(asks, sources) -> None:
    answer = asks("Does Mars have life?", *sources, abstain=False)
    assert answer.answered
    assert answer.citations


def test_a_model_reads_the_sources_and_its_markers_are_checked(asks, scripted, sources) -> None:
    model = scripted("Each parent may take 320 working days [1]. It is 99 % sunny [2]. So it is [7].")
    answer = asks(QUESTION, *sources, model=model, instructions="Be short.")
    assert answer.text == "Each parent may take 320 working days [1]. It is 99 % sunny [2]. So it is."
    assert answer.invalid_citations == 1
    assert [(c.marker, c.document_id, c.verified) for c in answer.citations] == [
        (1, "leave", True),
        (2, "travel", False),
    ]
    assert (answer.model, answer.prompt_tokens, answer.completion_tokens) == ("scripted", 11, 7)
    [[system, user]] = model.asked
    assert LEAVE in user.content
    assert TRAVEL in user.content
    assert "Be short." in system.content
    assert set(answer.timings_ms) == {"search", "evidence", "generate", "cite", "total"}


def test_a_refusal_of_the_model_is_no_evidence(asks, scripted, sources) -> None:
    answer = asks(QUESTION, *sources, model=scripted(NO_ANSWER))
    assert (answer.answered, answer.reason, answer.citations) == (False, "no_evidence", ())
    assert answer.text == "The sources do not answer this question."
    assert (answer.sources, answer.prompt_tokens) == (sources, 11)


def test_a_question_in_another_script_than_the_sources_is_left_to_the_model(asks, scripted, sources) -> None:
    model = scripted("每位家长可以休 320 天[1]。")
    assert asks("每位家长可以休多少天育儿假？", *sources, model=model).answered
    assert not asks("每位家长可以休多少天育儿假？", *sources).answered


def test_an_extractive_answer_can_be_asked_for_although_there_is_a_model(asks, scripted, sources) -> None:
    model = scripted("Made up.")
    assert asks(QUESTION, *sources, model=model, answerer="extractive").model == "extractive"
    assert model.asked == []


def test_a_generative_answer_without_a_model_names_the_setting_before_any_work(asks) -> None:
    def never(query: str) -> SearchResult:
        raise AssertionError(query)

    with pytest.raises(LanguageModelUnavailable) as caught:
        asks(QUESTION, answerer="generative", search=never)
    assert "FOOTNOTE_LANGUAGE_MODEL" in (caught.value.hint or "")


@pytest.mark.parametrize("failure", [LanguageModelUnavailable("no answer"), UpstreamAuthentication("key refused")])
def test_a_model_that_fails_is_an_error_and_never_an_extract(asks, scripted, sources, failure) -> None:
    model = scripted()
    model.failure = failure
    with pytest.raises(type(failure)):
        asks(QUESTION, *sources, model=model)


def test_an_empty_answer_of_the_model_is_an_error(asks, scripted, sources) -> None:
    with pytest.raises(UpstreamRejected) as caught:
        asks(QUESTION, *sources, model=scripted(" \n", finish_reason="length"))
    assert "max_tokens" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (("Each parent may take 320 days", "length"), "answer_truncated"),
        (("Each parent may take 320 days.", "stop"), "answer_without_citations"),
    ],
)
def test_an_answer_that_is_cut_or_cites_nothing_says_so(asks, scripted, sources, model, code) -> None:
    text, finish_reason = model
    answer = asks(QUESTION, *sources, model=scripted(text, finish_reason=finish_reason))
    assert answer.answered
    assert code in [warning.code for warning in answer.warnings]


def test_a_small_window_gets_fewer_passages_and_sources_are_those_it_read(asks, scripted, make_passage) -> None:
    sources = [make_passage(f"{LEAVE} {TRAVEL} " * 12, str(number)) for number in range(6)]
    model = scripted("It is 320 days [6]. So it is [1].", context_tokens=2600)
    answer = asks(QUESTION, *sources, model=model, max_context_tokens=100_000)
    assert "context_truncated" in [warning.code for warning in answer.warnings]
    assert len(answer.sources) < 6
    assert (answer.invalid_citations, answer.citations[-1].marker) == (1, 1)


def test_without_an_embedder_words_weigh_the_evidence(asks, sources, failing_embedder) -> None:
    answer = asks(QUESTION, *sources, embedder=failing_embedder(EmbeddingUnavailable("no answer")))
    assert answer.answered
    assert [warning.code for warning in answer.warnings] == ["embedding_unavailable"]


def test_the_search_gets_the_cleaned_question_and_its_warnings_reach_the_caller(asks, sources) -> None:
    seen = []

    def search(query: str) -> SearchResult:
        seen.append(query)
        return SearchResult(sources, (query,), "hybrid", ("dense",), (Notice("embedding_unavailable", "no answer"),))

    answer = asks(f"  {QUESTION}\0", search=search)
    assert seen == [QUESTION]
    assert [warning.code for warning in answer.warnings] == ["embedding_unavailable"]


HANDBOOK = "Who may go. " + LEAVE + " The form for it is called P-11."


@pytest.fixture
def in_context(make_passage):
    """The source on leave as the first part of its document, whose whole text stands around it."""
    hit = make_passage(LEAVE, "leave", start=12, page=4)
    return (replace(hit, heading_path=("Leave",), context=PassageContext(0, len(HANDBOOK), HANDBOOK)),)


@pytest.mark.parametrize("is_generated", [False, True])
def test_a_quote_from_around_a_hit_is_exact_and_names_the_chunk_that_it_stands_in(
    asks, scripted, in_context, is_generated
) -> None:
    def find_chunk(document_id: str, place: int) -> SimpleNamespace:
        assert (document_id, HANDBOOK[place:]) == ("leave", "The form for it is called P-11.")
        return SimpleNamespace(
            chunk_id="next", page_start=5, heading_path=("Forms",), start=place, text=HANDBOOK[place:]
        )

    model = scripted("The form is called P-11 [1].") if is_generated else None
    answer = asks("What is the form called?", *in_context, model=model, find_chunk=find_chunk)
    [citation] = answer.citations
    assert citation.quote == HANDBOOK[citation.start : citation.end] == "The form for it is called P-11."
    assert (citation.chunk_id, citation.page, citation.heading_path) == ("next", 5, ("Forms",))
    assert citation.verified
    assert answer.sources[0].text == HANDBOOK
    if model:
        assert HANDBOOK in model.asked[0][1].content


def test_a_quote_from_the_hit_itself_is_cited_as_ever(asks, in_context) -> None:
    [citation] = asks(QUESTION, *in_context).citations
    assert citation.quote == HANDBOOK[citation.start : citation.end]
    assert (citation.chunk_id, citation.page, citation.heading_path) == ("leave-12", 4, ("Leave",))


@pytest.mark.parametrize("text", [None, "Something else stands there now."])
def test_where_a_quote_stands_is_not_guessed_once_the_document_has_changed(asks, in_context, text) -> None:
    def find_chunk(document_id: str, place: int) -> SimpleNamespace | None:
        return None if text is None else SimpleNamespace(chunk_id="new", start=place, text=text)

    [citation] = asks("What is the form called?", *in_context, find_chunk=find_chunk).citations
    assert (citation.chunk_id, citation.page, citation.heading_path) == ("leave-12", None, ())


def test_a_context_that_does_not_fit_is_told_once(asks, scripted, in_context) -> None:
    for model in (None, scripted("Each parent may take 320 working days [1].")):
        answer = asks(QUESTION, *in_context, model=model, max_context_tokens=100)
        assert [warning.code for warning in answer.warnings] == ["context_truncated"]
        assert answer.sources[0].text in HANDBOOK
