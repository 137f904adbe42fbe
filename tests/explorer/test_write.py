"""Generation as the explorer tells it: the library's tokens, what each was chosen from, and a beam's whole tree."""

import json
import math

import pytest
import torch
from starlette.testclient import TestClient

import gnomon as gn
from gnomon.data import Tokenizer
from gnomon.errors import BadValue
from gnomon.explorer import Shelf, explorer
from gnomon.explorer.questions import answered, telling
from gnomon.generate import Beam, Sample

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    made = gn.DecoderOnly(vocab_size=257, d_model=16, n_layers=1, n_heads=2, position="rope").eval()
    made.tokenizer = Tokenizer.bytes()
    return made


def test_the_tokens_told_are_those_of_generate(model):
    ask = {"model": "decoder-only", "text": "ab", "strategy": "sample", "temperature": 0.7, "top_k": 9, "seed": 3}
    told = list(telling(Shelf([model]), "write", {**ask, "max_new_tokens": 5}))
    [same] = model.generate(["ab"], strategy=Sample(0.7, top_k=9), max_new_tokens=5, seed=3)
    assert [each["id"] for each in told] == same.ids
    assert told[-1]["end"] == same.finish_reason
    for each, logprob in zip(told, same.logprobs, strict=True):
        chosen = next(c for c in each["candidates"] if c["id"] == each["id"])
        assert math.log(chosen["before"]) == pytest.approx(logprob, abs=1e-4)
        assert each["kept"] == 9


def test_a_tree_is_that_of_the_beam(model):
    told = answered(Shelf([model]), "beams", {"model": "decoder-only", "text": "ab", "width": 3, "max_new_tokens": 4})
    [same] = model.generate(["ab"], strategy=Beam(width=3, n_best=3), max_new_tokens=4)
    assert [node["logprob"] for node in told["nodes"]] == [node.logprob for node in same.tree.nodes]
    assert [each["text"] for each in told["results"]] == [same.text, *(g.text for g in same.alternatives)]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_new_tokens": 0}, "1 to 256"),
        ({"max_new_tokens": 10**9}, "1 to 256"),
        ({"strategy": "beam"}, "strategy"),
        ({"temperature": -1.0}, "temperature"),
        ({"top_p": float("nan")}, "top_p"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_first_token(model, values, message):
    with pytest.raises(BadValue, match=message):
        telling(Shelf([model]), "write", {"model": "decoder-only", "text": "a", "strategy": "sample", **values})


def test_an_encoder_writes_nothing():
    shelf = Shelf([gn.EncoderOnly(vocab_size=9, d_model=8, n_layers=1, n_heads=1)])
    with pytest.raises(BadValue, match="encoder-only: it reads both sides"):
        answered(shelf, "beams", {"model": "encoder-only", "text": "a"})


def test_events_arrive_one_by_one_and_end(model):
    client = TestClient(explorer(Shelf([model]), ["localhost"]), base_url="http://localhost")
    body = json.dumps({"model": "decoder-only", "text": "ab", "max_new_tokens": 3})
    answer = client.post("/api/write", headers=JSON, content=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line.removeprefix("data: ")) for line in answer.text.strip().split("\n\n")]
    assert [event["token"] for event in events] == [
        e["token"] for e in telling(Shelf([model]), "write", json.loads(body))
    ]


def test_a_model_that_runs_out_of_memory_is_an_answer_with_words(model, monkeypatch):
    client = TestClient(explorer(Shelf([model]), ["localhost"]), base_url="http://localhost")

    def full(*_: object, **__: object) -> None:
        raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(type(model), "hidden", full)
    for name in ("write", "flow"):
        answer = client.post(f"/api/{name}", headers=JSON, content=json.dumps({"model": "decoder-only", "text": "ab"}))
        assert answer.status_code == 507
        assert "not enough memory" in answer.json()["error"]
