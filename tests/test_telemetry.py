import json
import logging

import pytest

from app.telemetry import Counters, StageTimer, configure_logging, request_id


@pytest.fixture(autouse=True)
def _restored_logging():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers, root.level = handlers, level


def test_json_logs_carry_fields_and_the_request_id(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", "json")
    token = request_id.set("req_1")
    logging.getLogger("app").info("job ended", extra={"job_id": "job_7"})
    request_id.reset(token)
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["job_id"], line["request_id"], line["level"]) == ("job ended", "job_7", "req_1", "info")


def test_text_logs_are_one_line_an_event(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("warning", "text")
    logging.getLogger("app").info("quiet")
    logging.getLogger("app").warning("loud", extra={"count": 3, "code": None})
    assert capsys.readouterr().err.splitlines()[0].endswith("warning loud count=3")


def test_counters_add_up() -> None:
    counted = Counters()
    counted.add("a")
    counted.add("a", 4)
    assert counted.snapshot() == {"a": 5}


def test_a_stage_entered_twice_adds_up_and_total_covers_all() -> None:
    timer = StageTimer()
    with timer.stage("a"):
        sum(range(100_000))
    first = timer.milliseconds()
    with timer.stage("a"):
        sum(range(100_000))
    timer.add("b", 5.0)
    timer.add("b", 2.5)
    second = timer.milliseconds()
    assert list(second) == ["a", "b", "total"]
    assert second["b"] == 7.5
    assert 0 < first["a"] < second["a"] <= second["total"]
