"""Natural wrong types: whatever public callable gets one, the answer is a GnomonError or a result, nothing raw.

Each public callable stands here with a call that works; then every one of its arguments in turn is given each value
that people do hand over by mistake.
"""

import inspect
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon import Layout

IDS = torch.tensor([[1, 2, 3], [4, 5, 6]])
MASK = torch.tensor([[1, 1, 0], [1, 1, 1]])
WRONG: dict[str, Any] = {
    "a text": "rope", "an empty text": "", "a number": 1.5, "a whole number": 3, "a negative number": -1, "true": True,
    "nothing": None, "a list": [1, 2], "rows": [[1, 0]], "ragged rows": [[1], [2, 3]], "a list of texts": ["a", "b"],
    "a mapping": {"a": 1}, "an array": np.ones((2, 3)), "an array of whole numbers": np.array([[1, 2, 3]]),
    "floats": torch.ones(2, 3), "a mask": MASK.bool(), "an integer mask": MASK, "a scalar": torch.tensor(1),
    "four axes": torch.ones(1, 2, 3, 4), "a class": dict, "an object": object(), "a function": len, "bytes": b"x",
    "a layout": Layout.dense(2, 3), "complex": torch.ones(2, 3, dtype=torch.complex64), "a module": torch.nn.Identity(),
    "a set": {1, 2}, "a choice": gn.positions.get("rope"),
}  # fmt: skip

Call = tuple[Callable[..., Any], dict[str, Any]]


def sizes() -> dict[str, Any]:
    return {"vocab_size": 30, "d_model": 16, "n_layers": 1, "n_heads": 2}


def decoder(**more: Any) -> Any:
    model = gn.DecoderOnly(257, 16, 1, 2, **{"position": "rope", "tied": False, **more}).eval()
    model.tokenizer = gn.Tokenizer.bytes()
    return model


def encoder() -> Any:
    return gn.EncoderOnly(**sizes(), n_types=2).eval()


def translator() -> Any:
    return gn.EncoderDecoder(**sizes()).eval()


def of(name: str) -> Any:
    return gn.positions.get(name).build(d_model=16, d_head=8, n_heads=2, max_positions=32)


def small_llama() -> Any:
    return gn.DecoderOnly.from_preset("mini-llama", vocab_size=30, d_model=16, n_layers=1).eval()


@cache
def saved() -> Path:
    return gn.save_model(decoder(), Path(tempfile.mkdtemp()) / "model")


@cache
def text_file() -> str:
    file = Path(tempfile.mkdtemp()) / "held_out.txt"
    file.write_text("a text to be measured on, " * 40)
    return str(file)


def pull(name: Any) -> Any:
    """No model is fetched here: a name that is not known is an error of ours, and so must all else be."""
    try:
        return gn.pull(name)
    except gn.BadValue:
        return None


def bound(method: str, make: Callable[[], Any] = decoder, **good: Any) -> Callable[[], Call]:
    return lambda: (getattr(make(), method), good)


def plain(function: Callable[..., Any], **good: Any) -> Callable[[], Call]:
    return lambda: (function, good)


Q, X = torch.ones(2, 2, 3, 8), torch.ones(2, 3, 16)
AT = Layout.dense(2, 3)
WRITING = {
    "prompts": "x", "strategy": gn.Greedy(), "max_new_tokens": 1, "min_new_tokens": 0, "seed": 0, "eos_ids": (),
    "stop": "end", "constraints": gn.Constraints(), "top_logprobs": 0, "cache": "growing",
}  # fmt: skip

CALLS: Mapping[str, Callable[[], Call]] = {
    "DecoderOnly": plain(
        gn.DecoderOnly,
        **sizes(),
        position="rope",
        max_positions=None,
        dropout=0.0,
        window=None,
        n_kv_heads=2,
        norm_eps=1e-5,
        activation="gelu",
        tied=True,
        embed_scale=None,
    ),
    "DecoderOnly.from_preset": plain(gn.DecoderOnly.from_preset, name="mini-gpt", n_layers=1, position="rope"),
    "DecoderOnly.from_config": plain(gn.DecoderOnly.from_config, config=gn.ModelConfig(**sizes())),
    "DecoderOnly()": lambda: (decoder(), {"ids": IDS, "at": AT, "cache": None, "trace": None}),
    "DecoderOnly() in a cache": lambda: ((m := decoder()), {"ids": IDS, "at": None, "cache": m.cache()}),
    "DecoderOnly.hidden": bound("hidden", ids=IDS, at=AT, cache=None, trace=None, memory=None),
    "DecoderOnly.cache": bound("cache", kind="growing", capacity=3, rollback=0),
    "DecoderOnly.check": bound("check", at=AT),
    "DecoderOnly.resize": bound("resize", vocab_size=260, pad_to_multiple=1),
    "DecoderOnly.generate": bound("generate", **WRITING, on_token=None),
    "DecoderOnly.stream": lambda: (
        lambda **given: list(decoder().stream(**given)),
        {
            "prompt": "x",
            **{k: v for k, v in WRITING.items() if k not in ("prompts", "top_logprobs")},
        },
    ),
    "EncoderOnly": plain(gn.EncoderOnly, **sizes(), head="tokens"),
    "EncoderOnly()": lambda: (encoder(), {"ids": IDS, "at": AT, "types": IDS * 0, "trace": None}),
    "EncoderOnly.encode": bound("encode", encoder, ids=IDS, at=AT, types=None, trace=None),
    "EncoderDecoder": plain(gn.EncoderDecoder, **sizes(), n_decoder_layers=1),
    "EncoderDecoder()": lambda: (
        translator(),
        {"source": IDS, "target": IDS, "source_at": AT, "at": AT, "trace": None},
    ),
    "EncoderDecoder.encode": bound("encode", translator, source=IDS, at=AT, trace=None),
    "EncoderDecoder.hidden": lambda: ((m := translator()).hidden, {"ids": IDS, "memory": m.encode(IDS)}),
    "EncoderDecoder.generate": bound("generate", translator, prompts=[[1]], source=[[1, 2]], max_new_tokens=1),
    "ModelConfig": plain(gn.ModelConfig, **sizes(), position=gn.positions.get("rope"), embed_scale=None, window=None),
    "ModelConfig.from_dict": plain(gn.ModelConfig.from_dict, data=sizes()),
    "InputLayer": plain(
        gn.InputLayer,
        vocab_size=30,
        d_model=16,
        position="learned",
        max_positions=8,
        combine="add",
        position_dim=None,
        scale="sqrt",
        norm=None,
        norm_eps=1e-5,
        dropout=0.0,
        padding_id=None,
        d_embed=None,
        n_types=0,
        std=None,
    ),
    "InputLayer()": lambda: (
        gn.InputLayer(30, 16, position="sinusoidal", n_types=2),
        {"ids": IDS, "at": AT, "types": IDS * 0},
    ),
    "TokenEmbedding": plain(
        gn.TokenEmbedding, vocab_size=30, d_model=16, scale="sqrt", padding_id=None, d_embed=None, std=None
    ),
    "TokenEmbedding()": lambda: (gn.TokenEmbedding(30, 16), {"ids": IDS}),
    "TokenEmbedding.unembed": bound("unembed", lambda: gn.TokenEmbedding(30, 16), h=X),
    "TokenEmbedding.resize": bound("resize", lambda: gn.TokenEmbedding(30, 16), vocab_size=31),
    "TokenEmbedding.import_vectors": bound(
        "import_vectors", lambda: gn.TokenEmbedding(30, 16), vectors={"a": torch.ones(16)}, vocabulary={"a": 1}
    ),
    "Tied": plain(gn.Tied, table=gn.TokenEmbedding(30, 16), bias=False, scale=1.0),
    "Tied()": lambda: (gn.Tied(gn.TokenEmbedding(30, 16)), {"h": X}),
    "Untied": plain(gn.Untied, d_model=16, vocab_size=30, bias=False, std=0.02),
    "Untied()": lambda: (gn.Untied(16, 30), {"h": X}),
    "MultiHeadAttention": plain(
        gn.MultiHeadAttention,
        d_model=16,
        n_heads=2,
        n_kv_heads=1,
        d_head=8,
        causal=True,
        window=None,
        attention_scale=None,
        bias=True,
        dropout=0.0,
        sink_tokens=0,
        softcap=None,
        sinks=False,
        qk_norm=False,
        norm_eps=1e-6,
    ),
    "MultiHeadAttention()": lambda: (
        gn.MultiHeadAttention(16, 2),
        {
            "x": X,
            "position": of("alibi"),
            "tables": None,
            "at": AT,
            "k_at": AT,
            "layer": 0,
            "cache": None,
            "trace": None,
        },
    ),
    "attend": plain(
        gn.attend,
        q=Q,
        k=Q,
        v=Q,
        position=of("alibi"),
        at=AT,
        k_at=AT,
        causal=True,
        window=None,
        scale=None,
        dropout=0.0,
        sink_tokens=0,
        softcap=None,
        sinks=None,
        kernel=None,
    ),
    "attend alone": plain(gn.attend, q=Q, k=Q, v=Q),
    "visible": plain(gn.visible, q=AT, k=AT, causal=True, window=None, sink_tokens=0),
    "Layout.dense": plain(Layout.dense, B=2, T=3, device=None),
    "Layout.padded": plain(Layout.padded, mask=MASK),
    "Layout.packed": plain(Layout.packed, lengths=[[3, 2]], device=None),
    "Layout.prefix": plain(Layout.prefix, n=2, T=3, device=None),
    "Layout.randomized": plain(Layout.randomized, T=3, max=9, rng=None, batch=1),
    "Layout.from_hf": plain(Layout.from_hf, attention_mask=MASK, position_ids=IDS),
    "Layout.from_hf positions": plain(Layout.from_hf, position_ids=IDS),
    "Layout.placed": plain(Layout.placed, positions=IDS, device=None),
    "Layout.mask": bound("mask", lambda: AT, keys=AT, causal=True, window=None, sink_tokens=0),
    "Layout.then": bound("then", lambda: AT, n=2),
    "Layout.cat": bound("cat", lambda: AT, other=AT),
    "Layout.expand": bound("expand", lambda: Layout.dense(1, 3), B=2),
    "cite": plain(gn.cite, what="rope"),
    "positions.get": plain(gn.positions.get, name="rope"),
    "positions.recipe": plain(gn.positions.recipe, name="cape"),
    "positions.get rope": lambda: (
        lambda **options: gn.positions.get("rope", **options).build(d_head=8),
        {"base": 1e4, "pairing": "half", "rotary_dim": None, "fraction": None, "scaling": None},
    ),
    "positions.get sinusoidal": lambda: (
        lambda **options: gn.positions.get("sinusoidal", **options).build(d_model=8),
        {"base": 1e4, "table": "interleaved"},
    ),
    "positions.get learned": lambda: (
        lambda **options: gn.positions.get("learned", **options).build(d_model=8),
        {"max_positions": 8, "std": 0.02, "offset": 0},
    ),
    "positions.get alibi": lambda: (
        lambda **options: gn.positions.get("alibi", **options).build(n_heads=2),
        {"causal": True, "sides": "symmetric"},
    ),
    "positions.get t5": lambda: (
        lambda **options: gn.positions.get("t5", **options).build(n_heads=2),
        {"causal": True, "n_buckets": 32, "max_distance": 128, "std": 0.02},
    ),
    **{
        f"Spec.build {name}": plain(
            gn.positions.get(name).build, d_model=16, d_head=8, n_heads=2, causal=True, max_positions=32
        )
        for name in gn.positions.names()
    },
    "positions.encoding": plain(gn.positions.encoding, name="rope"),
    "positions.sinusoidal_table": plain(
        gn.positions.sinusoidal_table, max_len=3, d_model=4, base=1e4, table="interleaved"
    ),
    "positions.sin_cos": plain(gn.positions.sin_cos, max_len=3, d_model=4, base=1e4),
    "positions.pairing_order": plain(gn.positions.pairing_order, d=8, to="half", heads=1),
    **{
        f"{name}()": (lambda name=name: (of(name), {"x": X if of(name).acts == "input" else Q, "at": AT}))
        for name in ("none", "sinusoidal", "learned", "rope")
    },
    "alibi()": lambda: (of("alibi"), {"x": torch.ones(2, 2, 3, 3), "at": AT}),
    "alibi.bias_tensor": bound("bias_tensor", lambda: of("alibi"), q_at=AT, k_at=AT, n_heads=2, dtype=torch.float32),
    "alibi.score_mask": bound("score_mask", lambda: of("alibi"), q_at=AT, k_at=AT, causal=True, window=None, n_heads=2),
    "rope.apply": bound("apply", lambda: of("rope"), q=Q, k=Q, position_ids=None),
    "rope.sin_cos": bound("sin_cos", lambda: of("rope"), at=[1, 2]),
    "sinusoidal.sin_cos": bound("sin_cos", lambda: of("sinusoidal"), at=[1, 2]),
    "learned.grow": bound("grow", lambda: of("learned"), max_positions=40, how="tile"),
    "Greedy": plain(gn.Greedy),
    "Sample": plain(gn.Sample, temperature=1.0, top_k=2, top_p=0.5, min_p=0.1),
    "Beam": plain(gn.Beam, width=2, length_penalty=1.0, early_stopping=False, n_best=1),
    "DiverseBeam": plain(
        gn.DiverseBeam, width=2, groups=2, diversity=0.5, length_penalty=1.0, early_stopping=False, n_best=1
    ),
    "Contrastive": plain(gn.Contrastive, k=2, alpha=0.5),
    "Lookup": plain(gn.Lookup, strategy=gn.Greedy(), ngram=2, length=2),
    "Speculative": lambda: (gn.Speculative, {"draft": decoder(), "strategy": gn.Greedy(), "length": 2}),
    "Constraints": lambda: (
        lambda **given: decoder().generate("x", constraints=gn.Constraints(**given), max_new_tokens=1),
        {
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "no_repeat_ngram": None,
            "bad_words": (),
            "allowed": None,
            "prefix": (),
        },
    ),
    "neighbors": lambda: (gn.neighbors, {"model": decoder(), "word": "a", "top": 2}),
    "sentence_vectors": lambda: (gn.sentence_vectors, {"model": decoder(), "texts": ["a", "b"], "unit": False}),
    "Tokenizer": lambda: (gn.Tokenizer, {"given": gn.Tokenizer.bytes()._text, "names": None, "chat_template": None}),
    "Tokenizer.encode": bound("encode", gn.Tokenizer.bytes, text="a", special=False),
    "Tokenizer.decode": bound("decode", gn.Tokenizer.bytes, ids=[97]),
    "Tokenizer.bpe": plain(gn.Tokenizer.bpe, texts=["a"], vocab_size=300),
    "Tokenizer.characters": plain(gn.Tokenizer.characters, texts=["a"]),
    "Corpus.from_texts": plain(gn.Corpus.from_texts, texts=["a"]),
    "load": lambda: (gn.load, {"what": saved(), "device": "cpu", "dtype": None}),
    "convert": lambda: (
        gn.convert,
        {"model": saved(), "output": "written", "to": "native", "dtype": None, "family": None},
    ),
    "evaluate": lambda: (gn.evaluate, {"run": saved(), "data": text_file(), "device": "cpu", "dtype": "auto"}),
    "extend": lambda: (gn.extend, {"model": decoder(), "to": 64, "method": "yarn", "trained": 32, "beta_fast": 16.0}),
    "retrofit": lambda: (gn.retrofit, {"model": decoder(), "position": "alibi", "max_positions": None}),
    "plan": plain(gn.plan, config="mini-gpt", d_model=16, position="rope"),
    "presets": plain(gn.presets),
    "pull": plain(pull, name="unpublished"),
    "save_model": lambda: (gn.save_model, {"folder": "saved", "model": decoder(), "tokenizer": None}),
    "save_hf": lambda: (gn.save_hf, {"model": small_llama(), "folder": "written", "family": None}),
    "audit.LAWS": lambda: (gn.audit.LAWS["shift"], {"target": gn.audit.target(decoder())}),
    "audit.SmallModel.of": plain(gn.audit.SmallModel.of, name="alibi"),
}


#: what takes no argument that could be wrong, or is made to be subclassed
ELSEWHERE = {
    "BadInput", "BadValue", "GnomonError", "Terminated", "PositionEncoding", "Trace",
}  # fmt: skip


def test_every_public_callable_stands_here():
    named = {name.split(".")[0].removesuffix("()").split(" ")[0] for name in CALLS}
    public = {name for name in gn.__all__ if callable(getattr(gn, name)) and not inspect.ismodule(getattr(gn, name))}
    assert public - named - ELSEWHERE == set()
    chosen = {name for name in gn.positions.__all__ if not inspect.isclass(getattr(gn.positions, name))}
    assert chosen - {"names", "recipes"} - {name.removeprefix("positions.") for name in CALLS} == set()


def raw_errors(name: str) -> list[str]:
    """What of the wrong types comes out of this callable as anything but a result or an error of ours."""
    found = []
    function, good = CALLS[name]()
    function(**good)  # it works as it should
    for argument in good:
        for words, wrong in WRONG.items():
            if argument in ("on_token", "allowed") and callable(wrong):
                continue  # what a function of the user's raises is the user's
            function, good = CALLS[name]()
            try:
                function(**{**good, argument: wrong})
            except gn.GnomonError as error:
                if not str(error).strip():
                    found.append(f"{argument} = {words}: an error without words")
            except Exception as error:
                found.append(f"{argument} = {words}: {type(error).__name__}: {error}"[:150])
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_a_natural_wrong_type_is_an_error_of_ours(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a text is a folder to what saves
    assert raw_errors(name) == []


# ------------------------------------------------------------------ and the words say how to make the right one


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: decoder()(IDS, MASK), r"at must be a Layout, got a torch tensor of torch.*Layout.padded\(mask\)"),
        (lambda: decoder()(IDS, IDS), r"for positions gn\.Layout\.placed\(positions\)"),
        (lambda: decoder()("hello"), r"ids must be a tensor of token ids.*got 'hello'.*tokenizer\.encode"),
        (lambda: decoder()([[1, 2]]), r"got a list of 1 list.*torch\.tensor\("),
        (lambda: decoder()(IDS.numpy()), "got a numpy ndarray of int64"),
        (lambda: decoder()(IDS.float()), "token ids are integers"),
        (lambda: decoder()(IDS, None, MASK), r"cache must be a Cache .*model\.cache\(\)"),
        (lambda: gn.attend(Q, Q, Q, "rope", AT, AT), r"position must be a PositionEncoding.*'rope'.*\.build\("),
        (lambda: gn.attend(Q, Q, Q, of("rope"), MASK, MASK), r"k_at must be a Layout.*padded\(mask\)"),
        (lambda: gn.attend(Q[0], Q, Q), r"q must be a floating-point tensor, \(batch, heads, tokens, d_head\)"),
        (lambda: gn.InputLayer(9, 4)(torch.tensor([[1]]), [5]), "at must be a Layout"),
        (lambda: gn.audit.LAWS["shift"]("rope"), r"gn\.audit\.target\(model\)"),
        (lambda: gn.audit.LAWS["causalty"], "unknown law 'causalty': did you mean 'causality'"),
        (lambda: gn.audit.LAWS[5], "unknown law 5"),
        (lambda: gn.presets()["mini-lama"], "unknown preset 'mini-lama': did you mean 'mini-llama'"),
        (lambda: gn.models.PRESETS["mini-lama"], "did you mean 'mini-llama'"),
        (lambda: gn.MultiHeadAttention(16, 2)(X, of("rope"), [5, 6, 7]), r"tables.*at=gn\.Layout\.placed"),
        (lambda: gn.Beam(1.5), "width must be a whole number, got 1.5"),
        (lambda: decoder().generate("x", seed="x"), "a seed must be a whole number, got 'x'"),
        (lambda: decoder().generate("x", strategy="greedy"), r"strategy must be an object such as Greedy\(\)"),
        (lambda: decoder().generate("x", strategy=gn.Sample), "got the class Sample"),
        (lambda: gn.Tokenizer.load(3), "path must be a text or a path, got 3"),
        (lambda: gn.MultiHeadAttention(8, 2)(torch.ones(1, 3, 8).long()), "x must be a floating-point tensor"),
        (lambda: decoder().generate("x", max_new_tokens=1.5), "max_new_tokens must be a whole number, got 1.5"),
        (lambda: gn.sentence_vectors(decoder(), "a text"), "for one text give a list of one"),
        (lambda: gn.save_model("folder", decoder()), "model must be a Module, got .folder."),
        (lambda: gn.DecoderOnly(30, "16", 1, 2), "d_model must be a whole number .*got '16'"),
        (lambda: gn.positions.get(gn.positions.RoPE), "got the class RoPE"),
    ],
)  # fmt: skip
def test_the_error_says_what_was_given_and_how_to_make_what_is_expected(call, says):
    with pytest.raises(gn.BadValue, match=says):
        call()
