"""Measure how far each activation channel of the float model spreads, over sentences of many kinds."""

import numpy as np
import onnxruntime

from app.inference.embedders import e5_graph
from app.inference.embedders.e5_weights import PackedWeights
from app.inference.embedders.sentencepiece_tokenizer import SentencePieceTokenizer

# Only the spread is taken from these: they name no fact and need no upkeep. A channel that none of them
# excites would be quantised coarsely, hence the scripts, code, markup, numbers and shouting.
SENTENCES = (
    "passage: The harbour froze in January, so the ferry company moved its winter timetable to the southern pier and "
    "printed new maps for the passengers who still preferred paper to a telephone.",
    "passage: Patients who received the lower dose showed fewer side effects after twelve weeks, although the "
    "difference in blood pressure between both arms of the trial was not significant (p = 0.21).",
    "passage: We measured the lift coefficient of a swept wing at Mach 0.8 and compared it with linearised theory; "
    "agreement is close until the boundary layer separates near the trailing edge.",
    "passage: 员工每年享有十五天带薪年假，未使用的假期可以顺延到次年三月底。病假超过三天需要提供医院证明。",
    "passage: 这座桥建于一九五七年，全长一千六百七十米，连接了江南和江北两个城区，是当地居民最熟悉的地标之一。",
    "passage: 部署方案分为三个阶段：先在测试环境验证，再灰度发布 10% 的流量，最后全量上线并保留 v1.8 以便回滚。",
    "passage: Die Gemeinde stellt jedem Haushalt zwei Tonnen bereit; Sperrmüll wird nach Anmeldung vierteljährlich "
    "abgeholt, größere Mengen müssen zum Wertstoffhof gebracht werden.",
    "passage: Le boulanger ouvre à six heures, sauf le lundi. La receta lleva dos huevos y medio litro de leche. "
    "O comboio parte às nove da manhã. Il museo resta chiuso d'inverno.",
    "passage: Библиотека закрыта на ремонт до осени; книги можно вернуть через ящик у входа в любое время суток.",
    "passage: يفتح المكتب أبوابه من الأحد إلى الخميس، ويمكن حجز موعد عبر الموقع أو بالهاتف.",
    "passage: 会議は午後三時から始まります。資料は前日までに共有フォルダーへアップロードしてください。",
    "passage: 창고의 온도는 섭씨 오 도로 유지됩니다. यह दवा भोजन के बाद लें। ร้านนี้ปิดทุกวันจันทร์ Thư viện mở cửa cả cuối tuần.",
    "passage: def median(values):\n    ordered = sorted(values)\n    middle = len(ordered) // 2\n"
    "    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2",
    "passage: SELECT name, COUNT(*) FROM orders WHERE status != 'void' GROUP BY 1 HAVING COUNT(*) > 3; {\"ok\": true, "
    '"items": [1, 2.5, null]}',
    "passage: ## Upgrade\n\n1. Stop the service: `systemctl stop relay`\n2. Copy `/etc/relay/*.conf`\n\n"
    "| Option | Default |\n|---|---|\n| `retries` | 3 |\n| `timeout` | 30 s |\n\n> **Note:** keep a backup!",
    "passage: https://wiki.example.net/a/b-c_d?page=12&lang=pt-BR#history · support@example.net · C:\\Temp\\run_07.log "
    "· SHA-256 9f86d081884c7d65 · ERROR 0x8007042B (E_TIMEOUT)",
    "passage: 07:45 12.5 kg €1,299.00 3/4 cup −18 °C 2031-11-05 +49 30 123456 ISBN 978-3-16-148410-0 100% 1e-9 IV. (7)",
    "passage: NO REFUNDS AFTER DEPARTURE. ALL CLAIMS MUST BE FILED IN WRITING WITHIN THIRTY (30) DAYS; SEE 4.2(b).",
    "passage: E = mc², ∫₀^∞ e^{−x²} dx = √π/2, ∀ε>0 ∃δ: |x−y|<δ ⇒ |f(x)−f(y)|<ε, H₂O → H⁺ + OH⁻",
    "passage: 🎉🎂 happy birthday!!! 😊 ♥ ★★★☆☆ → ok ✓ ——— … «so» „that“ 【注意】（完）",
    "passage: - - - - - ======== ........ ######## ________ \n\n\t x x x x",
    "passage: b",
    "passage: 雨",
    "passage: Yes.",
    "query: how long can unused holidays be carried over",
    "query: which theory predicts lift of swept wings near the speed of sound",
    "query: side effects of a low dose after three months",
    "query: 病假需要什么证明",
    "query: 大桥有多长？",
    "query: cancel subscription",
    "query: IndexError: list index out of range",
    "query: Wann wird Sperrmüll abgeholt?",
    "query: 7",
)


def activation_spread(weights: PackedWeights, tokenizer: SentencePieceTokenizer) -> e5_graph.ActivationSpread:
    """Return the root mean square per channel of what goes into the layers that profit from smoothing.

    The projection after attention is left out: its input has no outliers.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = e5_graph.float_model(weights).SerializeToString()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    del model
    unneeded = (".attended", e5_graph.OUTPUT, e5_graph.TOKENS)
    names = [output.name for output in session.get_outputs() if not output.name.endswith(unneeded)]

    squares = {name: np.float64(0) for name in names}
    tokens = 0
    for ids in tokenizer.encode(SENTENCES):
        tokens += len(ids)
        for name, activation in zip(
            names, session.run(names, {e5_graph.INPUT: np.array([ids], np.int32)}), strict=True
        ):
            squares[name] = squares[name] + np.square(activation[0], dtype=np.float64).sum(axis=0)
    return {name: np.sqrt(total / tokens).astype(np.float32) for name, total in squares.items()}
