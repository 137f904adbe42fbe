"""Ways to let a RoPE model read further, and advice."""

import numpy as np
import pytest
import torch

import gnomon as gn
from gnomon.errors import BadInput, BadValue
from gnomon.glossary import LANGUAGES
from gnomon.lab.extending import advice, passkeys
from gnomon.lab.extending.advice import advise, judge
from gnomon.lab.extending.measure import METHODS, contexts_up_to, reader, texts, tuned
from gnomon.lab.extending.table import Bench, ExtensionTable, extension

TRAINED = 16


@pytest.fixture(scope="module")
def corpus():
    return gn.Corpus.from_texts([f"{i} the dog bit the man and {i + 1} men bit the dog back " * 6 for i in range(6)])


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    made = gn.DecoderOnly(257, 16, 1, 2, position="rope(base=100)", max_positions=TRAINED, init_std=0.2).eval()
    made.tokenizer = gn.Tokenizer.bytes()
    return made


def test_rows_hold_every_method_factor_and_context(model, corpus):
    seen = []
    table = extension(
        model, factors=(2,), methods=("yarn", "dynamic"), text=corpus, documents=3, trials=0, hear=seen.append
    )
    assert seen == list(table)
    losses = {(r["method"], r["to"], r["context"]) for r in table if r["measure"] == "loss"}
    assert losses == {
        *(("none", n, n) for n in (8, 16, 32)),
        *((method, 32, n) for method in ("yarn", "dynamic") for n in (8, 16, 32)),
    }
    assert all(type(value) in (str, int, float, type(None)) for row in table for value in row.values())


def test_a_cache_reads_as_one_pass_does_under_every_method(model, corpus):
    table = extension(model, factors=(2,), text=corpus, documents=2, trials=0)
    found = {row["method"]: row["value"] for row in table if row["measure"] == "stepwise"}
    assert set(found) == set(METHODS)
    assert max(found.values()) < 1e-4


def test_cropping_is_the_model_as_trained_given_its_training_length(model, corpus):
    table = extension(model, factors=(2,), methods=("linear",), text=corpus, documents=3, trials=0)
    crop = next(r for r in table if (r["method"], r["context"]) == ("none", TRAINED))
    assert crop["against_crop"] == 0
    assert table.crop == crop["value"]
    dynamic = extension(model, factors=(2,), methods=("dynamic",), text=corpus, documents=3, trials=0)
    short = next(r for r in dynamic if (r["method"], r["context"]) == ("dynamic", TRAINED))
    assert short["value"] == pytest.approx(crop["value"])  # it changes nothing within the training length


def test_a_few_steps_train_a_copy(model, corpus):
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    trained = tuned(model, corpus, 16, 2)
    assert all(weight.equal(before[name]) for name, weight in model.named_parameters())
    assert not all(weight.equal(before[name]) for name, weight in trained.named_parameters())


def test_no_text_that_is_measured_is_tuned_on(model, corpus):
    found, rest = texts(model, corpus, TRAINED, 32, 2)
    read = {bytes(row.tolist()).decode() for row in found.rows}
    assert len(read) == 2
    assert not any(document.text.startswith(text) for document in rest.documents for text in read)
    assert len(rest.documents) >= len(corpus.documents) // 2


def test_contexts_double_and_end_where_they_shall():
    assert contexts_up_to(64, 256) == [32, 64, 128, 256]
    assert contexts_up_to(64, 100) == [32, 64, 100]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"factors": (1,)}, "each above 1"),
        ({"methods": ("yearn",)}, "the methods are none, yarn"),
        ({"trained": 4}, "at least 8 tokens"),
    ],
)
def test_what_cannot_be_measured_is_an_error(model, corpus, given, message):
    with pytest.raises(BadValue, match=message):
        extension(model, **{"factors": (2,), "text": corpus, "documents": 2, **given})


def test_models_without_rope_a_length_or_a_tokenizer_say_so(corpus):
    with pytest.raises(BadValue, match="the position of this model is alibi"):
        reader(gn.DecoderOnly(257, 16, 1, 2, position="alibi"), 16)
    with pytest.raises(BadValue, match="training length of this model is unknown"):
        reader(gn.DecoderOnly(257, 16, 1, 2), None)
    with pytest.raises(BadInput, match="has no tokenizer"):
        extension(gn.DecoderOnly(257, 16, 1, 2), trained=16, text=corpus)


# ------------------------------------------------------------------ passkeys


def test_a_passkey_stands_at_its_depth_in_a_text_of_the_length_asked():
    tokenizer, filler = gn.Tokenizer.bytes(), np.full(4000, ord("x"))
    rng = np.random.default_rng(0)
    for depth in (0.1, 0.5, 0.9):
        asked = passkeys.question(tokenizer, filler, 400, depth, rng)
        text, key = bytes(asked.ids).decode(), bytes(asked.answer).decode()
        assert len(asked.ids) + len(asked.answer) == 400
        assert text.endswith("The pass key is")
        assert f"The pass key is{key}." in text
        before, after = text.split("\n", 1)[0], text.rsplit("\n", 2)[-2]
        assert len(before) / (len(before) + len(after)) == pytest.approx(depth, abs=0.02)


def test_where_there_is_no_room_nothing_is_asked(model):
    assert passkeys.rate(model, np.full(4000, 1), 40, 0.5, 3) is None


def test_every_token_of_a_key_must_be_the_likeliest():
    class Says(gn.DecoderOnly):
        def hidden(self, ids, at=None, cache=None, trace=None, memory=None):
            return ids[..., None].float()

        def head(self, states):
            after = {1: 2, 2: 3, 3: 9}
            logits = torch.zeros(*states.shape[:-1], 10)
            for i, token in enumerate(states[0, :, 0].tolist()):
                logits[0, i, after.get(int(token), 0)] = 1
            return logits

    model = Says(10, 16, 1, 2)
    assert passkeys.found(model, passkeys.Question([5, 1], [2, 3]))
    assert not passkeys.found(model, passkeys.Question([5, 1], [2, 4]))


# ------------------------------------------------------------------ advice


def bench_of(model, losses, crop):
    """A bench whose rows say what each method pays at 32 tokens and at 16, on two texts."""
    bench = Bench(model, TRAINED, None)
    rows = [{"method": "none", "to": 16, "context": 16, "value": crop, "change": 0.0, "most": 0.0}]
    for method, (far, most, short) in losses.items():
        rows.append({"method": method, "to": 32, "context": 32, "value": far, "change": far - crop, "most": most})
        rows.append({"method": method, "to": 32, "context": 16, "value": short, "change": short - crop, "most": 1.0})
    for row in rows:
        bench.keep(factor=2, measure="loss", depth=None, against_crop=row.pop("change"), least=-1.0, steps=0, **row)
    return bench


def test_a_method_that_beats_cropping_on_every_text_is_recommended(model):
    found = judge("m", bench_of(model, {"yarn": (2.9, -0.01, 3.1), "ntk": (3.2, 0.3, 3.0)}, 3.0), 32, ())
    assert (found.choice, found.kind) == ("yarn", "beats")
    assert found.short_nats == pytest.approx(0.1)
    assert "Use yarn to read 32 tokens" in found.text()
    assert "gnomon extend m --to 32 --method yarn" in found.text()


def test_one_that_loses_on_some_text_is_not(model):
    found = judge("m", bench_of(model, {"yarn": (2.9, 0.01, 3.1)}, 3.0), 32, ())
    assert (found.choice, found.kind) == ("crop", "no_better")
    for lang, text in {
        "en": "Crop to the last 16",
        "es": "Recorte a los últimos 16",
        "pt": "Recorte para os últimos 16",
    }.items():
        assert text in found.text(lang)


def test_of_methods_that_are_as_good_the_one_that_costs_least_is_taken(model):
    losses = {"yarn": (2.900, -0.1, 3.1), "dynamic": (2.901, -0.1, 3.0), "ntk": (2.95, -0.1, 2.9)}
    found = judge("m", bench_of(model, losses, 3.0), 32, ())
    assert found.choice == "dynamic"
    assert "read again at every token" in found.text()


def test_where_nothing_was_measured_there_is_no_advice(model):
    assert judge("m", Bench(model, TRAINED, None), 32, ("interrupted",)).kind == "nothing"


def test_advice_is_measured_and_said_in_three_languages(model, corpus):
    found = advise(model, 32, text=corpus, minutes=1, name="m")
    assert {row["method"] for row in found.table} == {"none", *METHODS}
    assert found.left_out == ()
    assert len({found.text(lang) for lang in LANGUAGES}) == 3
    assert found.to_dict()["evidence"]["trained"] == TRAINED
    cache = model.cache()
    model.hidden(torch.zeros(1, 32, dtype=torch.long), cache=cache)
    assert found.price["cache_bytes"] == sum(t.nbytes for kept in (cache.k, cache.v) for t in kept.values())


def test_what_there_is_no_time_for_is_listed(model, corpus):
    found = advise(model, 32, text=corpus, minutes=1e-9)
    assert {row["method"] for row in found.table} == {"none", "yarn"}
    assert {"dynamic", "ntk", "llama3", "linear", "none"} <= set(found.left_out)
    assert "Not measured: " in found.text()


def test_an_interrupted_advice_keeps_what_was_measured(model, corpus):
    seen = []

    def hear(row):
        seen.append(row)
        if len(seen) == 3:
            raise KeyboardInterrupt

    found = advise(model, 32, text=corpus, hear=hear)
    assert list(found.table) == seen
    assert found.left_out[-1] == "interrupted"


def test_reading_no_further_needs_no_advice(model, corpus):
    with pytest.raises(BadValue, match="reads 16 as it is"):
        advise(model, 16, text=corpus)
    with pytest.raises(BadValue, match="minutes must be above 0"):
        advise(model, 32, text=corpus, minutes=0)


def test_a_table_of_rows_is_written_in_three_languages(model, corpus):
    table = extension(model, factors=(2,), methods=("yarn",), text=corpus, documents=2, trials=0, tune=1)
    assert len({table.table(lang) for lang in LANGUAGES}) == 3
    assert "yarn 2×, 1 step" in table.table()
    assert isinstance(table, ExtensionTable)


def test_the_gate_keeps_long_passkeys_from_a_model_that_fails_at_half_its_length(model, corpus, monkeypatch):
    asked = []

    def rate(reader, filler, length, depth, trials, seed=0):
        asked.append(length)
        return 0.5

    monkeypatch.setattr("gnomon.lab.extending.table.rate", rate)
    table = extension(model, factors=(2,), methods=("yarn",), text=corpus, documents=2, trials=1)
    assert set(asked) == {8}
    assert table.gate == 0.5
    assert "It finds 50 % of the passkeys at 8 tokens" in table.table()
    monkeypatch.setattr("gnomon.lab.extending.table.rate", lambda *a, **k: 0.95)
    assert 32 in {
        r["context"]
        for r in extension(model, factors=(2,), methods=("yarn",), text=corpus, documents=2, trials=1)
        if r["measure"] == "passkey"
    }
    assert advice.GATE == 0.9
