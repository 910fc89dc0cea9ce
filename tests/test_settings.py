from pathlib import Path

import pytest

from app.errors import Misconfigured
from app.settings import Settings, load_settings


def test_an_unknown_name_refuses_to_start_and_suggests_the_nearest() -> None:
    with pytest.raises(Misconfigured) as caught:
        load_settings({"FOOTNOTE_LANGAUGE_MODEL": "x"})
    assert "FOOTNOTE_LANGAUGE_MODEL" in caught.value.detail
    assert caught.value.hint == "did you mean FOOTNOTE_LANGUAGE_MODEL?"


def test_other_programs_names_are_left_alone() -> None:
    assert load_settings({"PATH": "/bin", "FOOTNOTES": "1"}).port == 8000


def test_a_wrong_value_names_the_setting() -> None:
    with pytest.raises(Misconfigured, match="FOOTNOTE_PORT"):
        load_settings({"FOOTNOTE_PORT": "many"})


def test_an_empty_value_is_the_default() -> None:
    assert load_settings({"FOOTNOTE_LANGUAGE_MODEL": ""}).language_model is None


def test_the_process_environment_is_read_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOOTNOTE_MAX_TOP_K", "7")
    assert load_settings().max_top_k == 7


def test_models_live_in_the_data_folder_unless_moved() -> None:
    assert Settings(data=Path("/d")).models_folder == Path("/d/models")
    assert Settings(data=Path("/d"), models=Path("/m")).models_folder == Path("/m")


def test_secrets_are_not_shown() -> None:
    settings = load_settings(
        {"FOOTNOTE_ADMIN_KEY": "a-secret-of-sixteen", "FOOTNOTE_LANGUAGE_MODEL_API_KEY": "sk-hidden"}
    )
    assert "a-secret" not in repr(settings)
    assert "sk-hidden" not in repr(settings)


def test_networks_that_may_be_reached_are_read_and_checked() -> None:
    assert load_settings({}).allowed_networks == ()
    settings = load_settings({"FOOTNOTE_FETCH_ALLOWED_NETWORKS": "10.20.0.0/16, fd12::/32"})
    assert [str(network) for network in settings.allowed_networks] == ["10.20.0.0/16", "fd12::/32"]
    for wrong in ("10.20.0.1/16", "intranet"):
        with pytest.raises(Misconfigured, match="FOOTNOTE_FETCH_ALLOWED_NETWORKS"):
            load_settings({"FOOTNOTE_FETCH_ALLOWED_NETWORKS": wrong})


def test_fetching_is_off_by_default_and_names_itself_in_one_line() -> None:
    assert not load_settings({}).fetch
    assert load_settings({"FOOTNOTE_FETCH": "1"}).fetch
    for wrong in (" x", "x\r\nCookie: y", "x\n"):
        with pytest.raises(Misconfigured, match="FOOTNOTE_FETCH_USER_AGENT"):
            load_settings({"FOOTNOTE_FETCH_USER_AGENT": wrong})
