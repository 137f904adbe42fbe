"""Somebody's module as it is: what can be found out is, what cannot be asked is refused with what to give."""

import inspect
import re
from typing import get_args

import pytest
import torch
from torch import nn

import gnomon as gn
from gnomon.audit import NotApplicable, Torch
from gnomon.audit.adapters.torch_module import ARGUMENTS
from gnomon.audit.target import OTHERS, Ability
from gnomon.errors import BadValue

V, D = 11, 8


class Model(nn.Module):
    """A table of positions before that of tokens, as long as it likes; it sees everything before it."""

    def __init__(self, rows=16, padding=None):
        super().__init__()
        self.positions, self.tokens = nn.Embedding(rows, D), nn.Embedding(V, D, padding_idx=padding)
        self.small = nn.ModuleList(nn.Sequential(nn.Linear(D, 1)) for _ in range(5))
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(D, 4 * D), nn.Linear(4 * D, D)) for _ in range(3))
        self.head = nn.Linear(D, V, bias=False)

    def vectors(self, ids):
        return self.positions(torch.arange(ids.shape[1]).expand_as(ids)) + self.tokens(ids)

    def forward(self, ids):
        x = self.vectors(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.cumsum(1))


class Hugging(Model):
    def forward(self, input_ids, attention_mask=None, position_ids=None):
        ones = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        places = torch.arange(input_ids.shape[1]).expand_as(input_ids) if position_ids is None else position_ids
        x = (self.tokens(input_ids) + self.positions(places)) * ones[..., None]
        return {"logits": self.head(x.cumsum(1))}


class OtherWay(Hugging):
    """The same name, for the opposite: 1 is padding."""

    def forward(self, ids, attention_mask=None):
        return super().forward(ids, None if attention_mask is None else 1 - attention_mask)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.source, self.tokens, self.head = nn.Embedding(V, D), nn.Embedding(V, D), nn.Linear(D, V)

    def forward(self, src, tgt):
        return self.head(self.tokens(tgt).cumsum(1) + self.source(src).mean(1, keepdim=True))


# ------------------------------------------------------------------ found out


def test_tables_blocks_and_ends_are_found_by_what_they_do():
    model = Model()
    target = Torch(model)
    assert (target.vocab, target.limit, target.table_ends, target.layers) == (V, 16, True, 3)
    assert target.embedding() is model.tokens
    assert list(target.blocks()) == list(model.layers)
    assert target.embedding_and_head()[0] is model.tokens.weight
    assert target.embedding_and_head()[1] is model.head.weight
    assert target.can == {"module"}


def test_a_copy_is_looked_into_and_not_its_model():
    target = Torch(Model())
    assert target.copy().embedding() is not target.embedding()
    with target.editable(torch.float64) as cast:
        assert cast.embedding() is target.embedding()
        assert cast.logits(target.ids(1, 3)).dtype == cast.dtype == torch.float64
    assert target.logits(target.ids(1, 3)).dtype == target.dtype == torch.float32


def test_an_end_that_is_no_embedding_is_found_by_going_there():
    class Parameters(Model):
        def __init__(self):
            super().__init__()
            self.rows = nn.Parameter(torch.randn(13, D))

        def vectors(self, ids):
            if ids.shape[1] > len(self.rows):
                raise IndexError("no more rows")
            return self.tokens(ids) + self.rows[: ids.shape[1]]

    assert Torch(Parameters()).limit == 13
    assert Torch(Model(rows=900)).limit == 900
    assert Torch(lambda ids: torch.zeros(*ids.shape, 5)).limit is None


class Sinusoids(Model):
    """A table of sinusoids in a buffer, past whose end it raises, as adding vectors of two lengths does."""

    def __init__(self, rows):
        super().__init__()
        del self.positions
        angles = torch.arange(rows)[:, None] * 100.0 ** (-torch.arange(0, D, 2) / D)
        self.register_buffer("table", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))

    def vectors(self, ids):
        return self.tokens(ids) + self.table[: ids.shape[1]]


class Repeating(Sinusoids):
    """Past its end the last row is repeated."""

    def vectors(self, ids):
        return self.tokens(ids) + self.table[torch.arange(ids.shape[1]).clamp(max=len(self.table) - 1)]


@pytest.mark.parametrize("rows", [49, 64, 100, 256])
def test_the_end_of_a_table_is_found_first_and_an_error_past_it_is_right(rows):
    target = Torch(Sinusoids(rows))
    assert (target.limit, target.table_ends) == (rows, True)
    report = gn.audit(target)
    assert [found.law for found in report.failed if "position" in found.law or "place" in found.law] == []
    assert report["no two places are one"].verdict == report["past the table is an error"].verdict == "pass"


def test_places_past_an_end_that_is_none_are_seen_to_be_one():
    assert Torch(Sinusoids(300)).limit is None
    found = gn.audit(Repeating(64), only=["no two places are one"])["no two places are one"]
    assert found.verdict == "FAIL"
    assert "all tokens from 63 on stand at one position" in found.note


def test_ids_that_mean_padding_are_not_drawn():
    target = Torch(Model(padding=3))
    assert target.special == {3}
    assert not (target.ids(20, 20) == 3).any()


def test_names_of_hugging_face_are_used_where_they_mean_the_same():
    target = Torch(Hugging())
    assert target.can >= {"mask", "positions", "placed mask"}
    ids, mask = target.ids(1, 3), torch.tensor([[False, True, True]])
    assert torch.equal(target.logits(ids, mask=mask), target.model(ids, mask.long())["logits"])
    assert not torch.equal(target.logits(ids, positions=torch.tensor([[2, 3, 4]])), target.logits(ids))
    assert Torch(OtherWay()).can == {"module"}


def test_a_forward_of_src_and_tgt_has_a_source():
    target = Torch(Pair())
    assert (target.architecture, "source" in target.can) == ("encoder-decoder", True)
    ids, source = target.ids(2, 4), target.ids(2, 6, stream=1)
    assert torch.equal(target.with_source(source).logits(ids), target.model(source, ids))
    assert target.logits(ids).shape == (2, 4, V)
    with pytest.raises(NotApplicable, match="takes no mask of its source"):
        target.with_source(source, torch.ones_like(source).bool()).logits(ids)


def test_a_source_may_have_a_mask_and_another_name():
    class Named(Pair):
        def forward(self, question, answer, seen=None):
            return super().forward(question if seen is None else question * seen, answer)

    target = Torch(
        Named(),
        source=lambda model, source, ids: model(source, ids),
        source_masked=lambda model, source, mask, ids: model(source, ids, mask),
    )
    source, mask = target.ids(1, 4), torch.tensor([[True, True, False, False]])
    assert not torch.equal(target.with_source(source, mask).logits(source), target.with_source(source).logits(source))


@pytest.mark.parametrize("pack", [lambda x: x, lambda x: (x, None), lambda x: [x], lambda x: {"logits": x}])
def test_logits_may_be_wrapped(pack):
    logits = torch.randn(1, 48, V)
    target = Torch(lambda ids: pack(logits[:, : ids.shape[1]].expand(len(ids), -1, -1)))
    assert torch.equal(target.logits(torch.zeros(1, 3, dtype=torch.long)), logits[:, :3])


class LikeNanoGPT(Model):
    """All logits only where there are targets, whose shape is changed in place of a reshape."""

    def forward(self, ids, targets=None):
        logits = super().forward(ids)
        return (logits[:, -1:], None) if targets is None else (logits, targets.view(-1))


def test_a_model_that_shows_all_logits_only_with_targets_is_given_some():
    target = Torch(LikeNanoGPT())
    ids = target.ids(3, 7)[:, 2:6]
    assert torch.equal(target.logits(ids), target.model(ids, ids.contiguous())[0])


# ------------------------------------------------------------------ refused


class Older(Model):
    """Tokens first, rows second, as torch.nn has it unless it is told otherwise."""

    def forward(self, ids):
        return super().forward(ids.T).transpose(0, 1)


class Asks(Pair):
    def forward(self, src, tgt, mask):
        return super().forward(src, tgt)


class Last(Model):
    def forward(self, ids):
        return super().forward(ids)[:, -1:]


class Pooled(Model):
    def forward(self, ids):
        return super().forward(ids).mean(1)


class Writes(Model):
    def forward(self, ids):
        return super().forward(ids.mul_(0))


class Counts(Model):
    def __init__(self):
        super().__init__(rows=99)

    def forward(self, ids):
        return super().forward(ids).long()


class Named(Model):
    def forward(self, ids):
        return {"scores": super().forward(ids)}


class Broken(Model):
    def forward(self, ids):
        raise KeyError("weights")


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (Asks, r"forward\(src, tgt, mask\) wants more than ids"),
        (Last, "not one row a token; say how to ask it"),
        (Pooled, r"logits are a tensor \(B, T, V\) of .*, got torch.float32 \(1, 11\)"),
        (Broken, "answers no ids .*KeyError"),
        (Writes, r"writes into the ids .*ids.clone\(\)"),
        (Counts, r"floating point numbers, got torch.int64 \(1, 1, 11\)"),
        (Named, "got dict with 'scores'"),
        (lambda: Model().to("meta"), "positions.weight is on the meta device"),
        (lambda: (Model(), 3), r"got \(Model\( .* \[\.\.\.\]$"),
        (Older, r"reads ids \(T, B\): hand them over so, .*ids.T"),
    ],
)
def test_what_cannot_be_asked_is_refused_at_once(model, says):
    with pytest.raises(BadValue, match=says):
        gn.audit(model())


def test_what_was_refused_can_be_said():
    source = torch.tensor([[1, 2]])
    target = Torch(Asks(), forward=lambda model, ids: model(source.expand(len(ids), -1), ids, None))
    assert target.logits(target.ids(2, 3)).shape == (2, 3, V)
    assert Torch(Last(), forward=lambda model, ids: Model.forward(model, ids)).vocab == V


def test_a_combination_that_nobody_offered_is_not_applicable():
    target = Torch(Model(), masked=lambda model, ids, mask: model(ids))
    mask = torch.ones(1, 3).bool()
    with pytest.raises(NotApplicable, match="combination"):
        target.logits(target.ids(1, 3), mask=mask, docs=mask.long())
    with pytest.raises(NotApplicable, match="not told to have a cache"):
        target.step(None, target.ids(1, 3))


@pytest.mark.slow
def test_what_was_not_told_names_the_argument_that_tells_it():
    target = Torch(Model(), name="GPT")
    arguments = set(inspect.signature(Torch).parameters)
    for ability in get_args(Ability):
        lacks = target.lacks(ability)
        if ability in ARGUMENTS:
            assert re.fullmatch(r"GPT was not told to [a-z ]+: Torch\(model, (\w+)=\.\.\.\)", lacks)[1] in arguments
        else:
            assert lacks == (OTHERS if ability != "module" else "GPT is no torch module that could be looked into")
    assert gn.audit(target, only="cached")["cached = full"].note == target.lacks("cache")
    assert Torch(Model(), stepped=lambda model, state, ids: (model(ids), None)).can > target.can


def test_an_audit_of_a_module_changes_none_of_its_numbers():
    model = Hugging()
    before = {name: x.clone() for name, x in model.state_dict().items()}
    gn.audit(model)
    assert all(torch.equal(x, before[name]) for name, x in model.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


class Distances(Model):
    """Learned vectors for distances up to 20, as in Shaw et al. 2018, section 3.2: there is no end of positions."""

    def forward(self, ids):
        places = torch.arange(ids.shape[1])
        far = self.positions((places - places[:, None] + 20).clamp(0, 40))  # its first row counts 20, 21, ..
        return self.head((far[None].tril().sum(2) + self.tokens(ids)).cumsum(1))


def test_a_table_of_distances_is_no_table_of_positions():
    assert Torch(Distances(rows=41)).limit is None
    assert Torch(Model(rows=13)).limit == 13


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_a_model_that_reads_few_tokens_is_not_accused_of_it(rows):
    report = gn.audit(Model(rows))
    assert not [found for found in report.failed if found.note.startswith("raised")]
    assert f"reads {rows} tokens" in report["the past is seen"].note + report["prefix = beginning"].note + str(report)


class Untrained(Model):
    def forward(self, ids):
        if self.training:
            raise RuntimeError("weights are merged")
        return super().forward(ids)


class Single(Model):
    def __deepcopy__(self, memo):
        raise RuntimeError("there can be one only")


@pytest.mark.parametrize(
    ("make", "law", "why"),
    [
        (Untrained, "dropout acts once", "weights are merged"),
        (Single, "a deep copy is a model of its own", "one only"),
        (Single, "a tie stays a tie", "not tied"),
    ],
)
def test_what_cannot_be_trained_or_copied_is_not_accused(make, law, why):
    found = gn.audit(make(), only=[law])[law]
    assert found.verdict == "not applicable"
    assert why in found.note


def test_a_model_that_cannot_be_copied_is_asked_all_else():
    laws = {found.law for found in gn.audit(Model()).of("pass")}
    assert {found.law for found in gn.audit(Single()).of("pass")} == laws - {"a deep copy is a model of its own"}


def test_with_two_tokens_all_laws_can_be_asked():
    class Two(Model):
        def __init__(self):
            super().__init__(64)
            self.tokens, self.head = nn.Embedding(2, D), nn.Linear(D, 2, bias=False)

    assert not [found for found in gn.audit(Two()).failed if found.note.startswith("raised")]


def test_blocks_that_show_no_matrices_are_not_said_to_have_none():
    class Hidden(nn.Module):
        """Its matrix is no parameter, as where it is quantised."""

        def __init__(self):
            super().__init__()
            self.norm, self.packed = nn.LayerNorm(D), [torch.randn(D, D)]

        def forward(self, x):
            return self.norm((self.norm(x) @ self.packed[0]).tanh().cumsum(1) ** 2)

    class Quantised(Model):
        def __init__(self):
            super().__init__(64)
            self.small, self.layers = nn.ModuleList(), nn.ModuleList(Hidden() for _ in range(2))
            self.mix = nn.Identity()

        def forward(self, ids):
            x = self.vectors(ids)
            for layer in self.layers:
                x = layer(x)
            return self.head(x)

    found = gn.audit(Quantised(), only=["heads have projections"])["heads have projections"]
    assert (found.verdict, "quantised" in found.note) == ("not applicable", True)


class Encoder(Model):
    """Looks at all real tokens, whose positions are slots, as in BERT, which is padded on the right."""

    def __init__(self, hides=True):
        super().__init__()
        self.hides = hides

    def forward(self, ids, attention_mask=None):
        real = torch.ones_like(ids) if attention_mask is None or not self.hides else attention_mask
        x = self.vectors(ids).tanh() * real[..., None]
        return self.head(x + x.sum(1, keepdim=True))


@pytest.mark.parametrize(("hides", "verdict"), [(True, "not applicable"), (False, "FAIL")])
def test_an_encoder_may_count_slots_if_it_hides_padding_on_the_right(hides, verdict):
    report = gn.audit(Torch(Encoder(hides), architecture="encoder-only"), only=["left padding", "right padding"])
    assert report["left padding changes nothing"].verdict == verdict
    assert report["right padding changes nothing"].verdict == ("pass" if hides else "FAIL")
    decoder = gn.audit(Encoder(hides), only=["left padding"])["left padding changes nothing"]
    assert decoder.verdict == "FAIL", "a batch to be generated from is padded on the left"


class Translates(Model):
    """Finds out itself where its source is padded, as Vaswani et al. 2017 is often written."""

    def __init__(self, hides=True):
        super().__init__(padding=0)
        self.hides = hides

    def forward(self, source, ids):
        real = (source != 0) if self.hides else torch.ones_like(source)
        x = (self.vectors(source) + 1).tanh() * real[..., None]
        return self.head(self.vectors(ids).cumsum(1).tanh() + x.sum(1, keepdim=True))


@pytest.mark.parametrize(("hides", "left", "right"), [(True, "not applicable", "pass"), (False, "FAIL", "FAIL")])
def test_a_source_whose_padding_hides_itself_is_seen_to_be_hidden(hides, left, right):
    target = Torch(
        Translates(hides),
        source=lambda model, source, ids: model(source, ids),
        source_masked=lambda model, source, mask, ids: model(source.masked_fill(~mask, 0), ids),
    )
    report = gn.audit(target, only=["source padding"])
    verdicts = [report[f"source padding on the {side} changes nothing"].verdict for side in ("left", "right")]
    assert verdicts == [left, right]


# ------------------------------------------------------------------ lengths, and what was not told


class Certain(Model):
    """Answers texts of certain lengths alone; causal, or not."""

    def __init__(self, lengths, ahead=False):
        super().__init__(64)
        self.lengths, self.ahead = lengths, ahead

    def forward(self, ids, past=None, use_cache=False, kv_mask=None):
        if ids.shape[1] not in self.lengths:
            raise ValueError(f"{ids.shape[1]} tokens are not what it was made for")
        x = self.vectors(ids).tanh()
        return self.head(x + x.mean(1, keepdim=True) if self.ahead else x.cumsum(1))


@pytest.mark.parametrize("lengths", [{5}, {3, 6, 7}, set(range(2, 99)), set(range(4, 99, 4)), {1}])
def test_lengths_are_asked_one_by_one_and_faults_found_at_those_answered(lengths):
    target = Torch(Certain(lengths))
    assert target.lengths == {n for n in lengths if n <= 48}
    assert target.limit in (None, 1, 64)
    assert gn.audit(target, only=["causality", "every part"]).failed == ()
    found = gn.audit(Certain(lengths, ahead=True), only=["causality"])["causality"]
    assert found.verdict == ("not applicable" if lengths == {1} else "FAIL"), found.note


def last_line(report):
    return " ".join(str(report).rpartition("\n\n")[2].split())


def test_the_last_line_says_that_most_laws_were_not_asked_and_why():
    said = last_line(gn.audit(Certain({5})))
    assert "could be judged, " in said
    assert "MOST LAWS WERE NOT ASKED: " in said
    assert "It answers texts of 5 tokens only." in said
    assert re.search(r"\d+ laws could not be asked, since it raised ValueError: \d+ tokens are not .*\.py:\d+\.", said)
    assert "It was not told about its arguments past (stepped=), use_cache (stepped=), kv_mask (masked=)" in said
    assert re.search(r"\d+ laws would be asked if it was told placed=, stepped=, masked=", said)


def test_the_last_line_of_a_model_that_was_told_of_all_names_nothing():
    target = Torch(
        Certain(set(range(99))),
        masked=lambda model, ids, mask: model(ids),
        stepped=lambda model, state, ids: (model(ids), None),
    )
    said = last_line(gn.audit(target, only=["causality", "call history"]))
    assert said == "2 laws: 2 pass. Certain obeys every law that could be judged."


class OneAtATime(Model):
    """Refuses a single token but through its cache, as a model that looks one back in training."""

    def forward(self, ids, state=None):
        if state is None and ids.shape[1] == 1:
            raise AssertionError("training reads more than one token")
        seen = ids if state is None or not len(state) else torch.cat([state, ids], 1)
        return super().forward(seen)[:, -ids.shape[1] :], seen


@pytest.mark.slow
@pytest.mark.parametrize(("keeps", "verdict"), [(True, "pass"), (False, "FAIL")])
def test_a_model_that_refuses_one_token_is_asked_about_its_cache_all_the_same(keeps, verdict):
    def stepped(model, state, ids):
        out, seen = model(ids, ids[:, :0] if state is None or not keeps else state)
        return out, seen

    report = gn.audit(Torch(OneAtATime(64), stepped=stepped), only=["cached = full", "chunks = whole"])
    assert [found.verdict for found in report.findings] == [verdict, verdict], report
