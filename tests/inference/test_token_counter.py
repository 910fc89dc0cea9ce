import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.embedders.e5_files import MODEL_NAME
from app.inference.port import TokenCounterSpec
from app.inference.token_counter import estimate_tokens, load_token_counter

SHARED = Path(__file__).parents[3] / "shared" / "data"

SAMPLES = [
    "Each parent may take 320 working days of leave until the child is eight years old.",
    "今天讨论了部署方案，员工每年享有十五天带薪年假。",
    "東京は日本の首都であり、世界最大の都市圏の一つである。",
    "서울은 대한민국의 수도이며 한강을 끼고 있는 도시이다.",
    "Die Gemeinde stellt jedem Haushalt zwei Mülltonnen bereit; Größeres muss selbst gebracht werden.",
    "Библиотека закрыта на ремонт до осени; книги можно вернуть в любое время.",
    "def median(values):\n    ordered = sorted(values)\n    return ordered[len(ordered) // 2]\n",
    "| Option | Default |\n|---|---|\n| `retries` | 3 |\n",
    "SHA-256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "https://wiki.example.net/a/b-c_d?page=12&lang=pt-BR#history +49 30 1234567 €1,299.00",
    "🎉🎂 happy birthday!!! 😊 ♥ ★★★☆☆ → ok ✓",
    "E = mc², ∫₀^∞ e^{−x²} dx = √π/2, ∀ε>0 ∃δ",
]


@pytest.fixture(scope="module")
def exact(model_folder: Path):
    return load_token_counter(TokenCounterSpec("sentencepiece", str(model_folder / MODEL_NAME / "sentencepiece.model")))


@pytest.mark.model
@pytest.mark.parametrize("text", SAMPLES)
def test_the_estimate_is_never_below_a_real_count(exact, text):
    assert exact(text) <= estimate_tokens(text) <= 3 * exact(text)


@pytest.mark.model
@pytest.mark.shared
@pytest.mark.parametrize("name", ["scifact", "cranfield", "xquad_en", "xquad_zh", "cmrc2018", "dureader_robust"])
def test_the_estimate_is_never_below_a_real_count_on_real_texts(exact, name):
    path = SHARED / name / "corpus.jsonl"
    if not path.is_file():
        pytest.skip(f"no data set {name} in ../shared/data")
    with path.open() as lines:
        texts = [json.loads(line)["text"] for _, line in zip(range(300), lines, strict=False)]
    assert [text for text in texts if estimate_tokens(text) < exact(text)] == []


@given(st.text(), st.text())
def test_the_estimate_grows_with_the_text(one, other):
    assert estimate_tokens(one) <= estimate_tokens(f"{one} {other}")


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF)))
def test_a_chinese_character_is_at_least_a_token(text):
    assert estimate_tokens(text) >= len(text)


def test_the_estimate_needs_no_file():
    assert load_token_counter(TokenCounterSpec("estimate")) is estimate_tokens


def test_a_counter_without_its_file_is_refused():
    with pytest.raises(ValueError, match="path"):
        load_token_counter(TokenCounterSpec("sentencepiece"))


@pytest.mark.model
def test_counting_loads_neither_a_model_runtime_nor_an_sdk(model_folder):
    path = str(model_folder / MODEL_NAME / "sentencepiece.model")
    program = (
        "import sys; from app.inference.port import TokenCounterSpec; "
        "from app.inference.token_counter import load_token_counter; "
        "load_token_counter(TokenCounterSpec('sentencepiece', sys.argv[1]))('text'); "
        "print({'onnxruntime', 'onnx', 'openai', 'httpx2', 'pydantic'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")
