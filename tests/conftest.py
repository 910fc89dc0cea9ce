"""What tests of every room share."""

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from app.inference.embedders.e5_files import converted_files
from app.inference.embedders.hashed import HashedEmbedder


@pytest.fixture(scope="session")
def model_folder(pytestconfig: pytest.Config) -> Path:
    """The folder of converted models (`Settings(models=model_folder)`), with the embedded model in it.

    FOOTNOTE_MODELS names another than `.pytest_cache/models`, where later runs find it converted.
    """
    configured = os.environ.get("FOOTNOTE_MODELS")
    folder = Path(configured) if configured else pytestconfig.rootpath / ".pytest_cache" / "models"
    converted_files(folder)
    return folder


@dataclass
class Sent:
    """A request that the model server received."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    body_bytes: int


@dataclass
class Reply:
    """What the model server answers; a dict becomes JSON, `None` hangs up without an answer."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class ModelServer:
    """A real HTTP server that embeds (hashed) and chats, unless `script` or `respond` says something else.

    `script` holds replies for the next requests, first come first served; `respond` answers those after it.
    """

    Reply = Reply

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.script: list[Reply | None] = []
        self.respond: Callable[[Sent], Reply | None] = self.succeed
        self.chat_text = "The answer."
        self.released = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet: small answers would wait 40 ms for an acknowledgement

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                sent = Sent(self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(raw), len(raw))
                owner.sent.append(sent)
                reply = owner.script.pop(0) if owner.script else owner.respond(sent)
                self.close_connection = reply is None
                if reply is None:
                    return
                body = reply.encoded()
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def succeed(self, sent: Sent) -> Reply:
        return Reply(body=self.embeddings(sent) if sent.path.endswith("/embeddings") else self.chat(self.chat_text))

    def embeddings(self, sent: Sent) -> dict[str, Any]:
        vectors = HashedEmbedder().embed_passages(sent.body["input"])
        data = [{"index": i, "object": "embedding", "embedding": v.tolist()} for i, v in enumerate(vectors)]
        return {"object": "list", "model": sent.body["model"], "data": data}

    def chat(self, content: str | None, finish_reason: str = "stop", **message: Any) -> dict[str, Any]:
        return {
            "model": "served-name",
            "choices": [
                {"index": 0, "finish_reason": finish_reason, "message": {"content": content, **message}},
            ],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        }

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """An OpenAI-compatible server on 127.0.0.1 that can be told to fail; see `ModelServer`."""
    server = ModelServer()
    yield server
    server.close()


@dataclass
class Page:
    """What a site answers; `None` in place of a page hangs up."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Visit:
    """A request that a site received."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Site:
    """A real web server on 127.0.0.1, known as `host` to who asks `addresses`; `pages` answers each path.

    `host` names the site in tests of clients that take a resolver; what has no page is 404.
    """

    Page = Page
    host = "site.test"

    def __init__(self) -> None:
        self.visits: list[Visit] = []
        self.pages: dict[str, Page | Callable[[Visit], Page | None] | None] = {}
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                visit = Visit(self.command, self.path, headers, self.rfile.read(length))
                owner.visits.append(visit)
                page = owner.pages.get(self.path, Page(status=404))
                page = page(visit) if callable(page) else page
                self.close_connection = True
                if page is None:
                    return
                self.send_response(page.status)
                for name, value in {"Content-Length": str(len(page.body)), **page.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(page.body)

            def do_GET(self) -> None:
                self.answer()

            def do_POST(self) -> None:
                self.answer()

            def log_message(self, *args: Any) -> None: ...

            def handle(self) -> None:
                with contextlib.suppress(ConnectionError):
                    super().handle()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self._thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.port = self.server.server_port
        self.url = f"http://{self.host}:{self.port}"

    def addresses(self, host: str, port: int) -> list[str]:
        """Resolve the site's own name, and addresses to themselves."""
        if host == self.host:
            return ["127.0.0.1"]
        if host.replace(".", "").isdigit():
            return [host]
        raise OSError(f"{host} is not known")

    def paths(self) -> list[str]:
        """Return what was asked for, without robots.txt."""
        return [visit.path for visit in self.visits if visit.path != "/robots.txt"]

    def close(self) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    """A web site that tests fill with pages; see `Site`."""
    opened = Site()
    yield opened
    opened.close()


def shared_pairs(query: str, text: str) -> float:
    """Return the share of the query's pairs of characters that the text has too: a judge for easy cases, any script."""
    pairs = {query[at : at + 2] for at in range(len(query) - 1)}
    return sum(pair in text for pair in pairs) / max(1, len(pairs))


def judged(sent: Sent) -> Reply:
    """Answer a rerank request of either shape, or a language model's prompt to judge, by `shared_pairs`."""
    body = sent.body
    if sent.path.endswith("/rerank"):
        is_tei = "texts" in body
        scores = [shared_pairs(body["query"], text) for text in body["texts" if is_tei else "documents"]]
        best_first = sorted(enumerate(scores), key=lambda pair: -pair[1])
        results = [{"index": index, "score" if is_tei else "relevance_score": score} for index, score in best_first]
        return Reply(body=results if is_tei else {"id": "r", "results": results, "usage": {"total_tokens": 3}})
    asked = json.loads(body["messages"][-1]["content"])
    if "passage" in asked:
        answer = {"score": round(10 * shared_pairs(asked["query"], asked["passage"]))}
    else:
        best = sorted(asked["passages"], key=lambda one: -shared_pairs(asked["query"], one["passage"]))
        answer = {"order": [one["number"] for one in best]}
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": f"```json\n{json.dumps(answer)}\n```"}}
    return Reply(body={"model": "judge", "choices": [choice], "usage": {}})


@pytest.fixture
def judge(model_server: ModelServer) -> ModelServer:
    """The model server as a rerank server, and as a language model that judges passages; it embeds too."""
    model_server.respond = lambda sent: (model_server.succeed if sent.path.endswith("/embeddings") else judged)(sent)
    return model_server


@pytest.fixture(scope="session")
def cross_encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cross-encoder made here: its logit counts the words, or Chinese characters, that both texts have."""
    import numpy as np
    import tokenizers
    from onnx import TensorProto, helper, numpy_helper, save
    from tokenizers import models, pre_tokenizers, processors

    signs = [chr(point) for point in (*range(0x4E00, 0x9FA6), *range(0x30, 0x3A))]
    words = ("days", "each", "invoices", "leave", "may", "paid", "parent", "parental", "take", "thirty", "within")
    vocabulary = {word: place for place, word in enumerate(["[UNK]", "[CLS]", "[SEP]", *words, *signs])}
    tokenizer = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    chinese = pre_tokenizers.Split(tokenizers.Regex("[\u4e00-\u9fa5]"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([chinese, pre_tokenizers.BertPreTokenizer()])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    folder = tmp_path_factory.mktemp("cross-encoder")
    tokenizer.save(str(folder / "tokenizer.json"))

    size = len(vocabulary)
    told = np.array([0, 0, 0] + [1] * (size - 3), np.float32)
    constants = {"size": np.array([size]), "zero_one": np.array([0, 1], np.float32), "told": told}
    constants |= {"axis": np.array([1]), "last": np.array([-1]), "one": np.array(1, np.float32)}
    nodes = [
        helper.make_node("OneHot", ["input_ids", "size", "zero_one"], ["tokens"]),
        helper.make_node("Cast", ["token_type_ids"], ["kinds"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["kinds", "last"], ["second"]),
        helper.make_node("Sub", ["one", "second"], ["first"]),
        helper.make_node("Mul", ["tokens", "first"], ["of_first"]),
        helper.make_node("Mul", ["tokens", "second"], ["of_second"]),
        helper.make_node("ReduceMax", ["of_first", "axis"], ["in_first"], keepdims=0),
        helper.make_node("ReduceMax", ["of_second", "axis"], ["in_second"], keepdims=0),
        helper.make_node("Mul", ["in_first", "in_second"], ["in_both"]),
        helper.make_node("Mul", ["in_both", "told"], ["telling"]),
        helper.make_node("ReduceSum", ["telling", "axis"], ["shared"], keepdims=1),
        helper.make_node("Sub", ["shared", "one"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "shared-words",
        [helper.make_tensor_value_info(n, TensorProto.INT64, [1, "t"]) for n in ("input_ids", "token_type_ids")],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1])],
        [numpy_helper.from_array(values, name) for name, values in constants.items()],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), folder / "model.onnx")
    return folder
