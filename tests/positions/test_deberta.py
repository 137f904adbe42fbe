"""DeBERTa: the equation written out, the buckets and the attention of the transformers library."""

import pytest
import torch

import gnomon as gn
from gnomon.attention import MultiHeadAttention
from gnomon.positions.deberta import DeBERTa
from gnomon.positions.rows import gaps

SIZES = {"d_model": 8, "d_head": 4, "n_heads": 2}


def library():
    return pytest.importorskip("transformers.models.deberta_v2.modeling_deberta_v2")


@pytest.mark.parametrize(("buckets", "furthest"), [(256, 512), (32, 128), (16, 100), (4, 8)])
def test_rows_are_those_of_the_library(buckets, furthest):
    """Theirs takes a float32 logarithm, which at an edge may fall to the other side."""
    mine = DeBERTa(**SIZES, buckets=buckets, max_distance=furthest).row(torch.arange(-350, 350))
    gaps = 350 - torch.arange(700)
    theirs = (library().make_log_bucket_position(gaps, buckets, furthest).long() + buckets).clamp(0, 2 * buckets - 1)
    differs = (mine != theirs).nonzero().flatten()
    assert len(differs) <= 6
    assert (mine[differs] - theirs[differs]).abs().amax() <= 1 if len(differs) else True


def test_it_is_the_papers_three_terms():
    torch.manual_seed(0)
    x, attention = torch.randn(1, 6, 8), MultiHeadAttention(8, 2, causal=False)
    deberta = DeBERTa(**SIZES, buckets=None, max_distance=3, norm=False, std=0.7)
    split = lambda y: y.view(-1, 2, 4).transpose(0, 1)  # noqa: E731
    q, k, v = (split(part(x[0])) for part in (attention.q, attention.k, attention.v))
    K, Q = (split(part(deberta.weight)) for part in (attention.k, attention.q))
    out = torch.zeros(2, 6, 4)
    for h in range(2):
        for i in range(6):
            rows = [min(max(i - j + 3, 0), 5) for j in range(6)]
            scores = [(q[h, i] @ k[h, j] + q[h, i] @ K[h, r] + k[h, j] @ Q[h, r]) / 12**0.5 for j, r in enumerate(rows)]
            out[h, i] = torch.stack(scores).softmax(0) @ v[h]
    want = attention.out(out.transpose(0, 1).flatten(1))
    torch.testing.assert_close(attention(x, deberta)[0], want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("terms", ["c2p|p2c", "c2p", "p2c"])
@pytest.mark.parametrize("buckets", [4, -1])
def test_it_is_the_librarys_attention(share, terms, buckets):
    torch.manual_seed(0)
    settings = {"share_att_key": share, "pos_att_type": terms.split("|"), "position_buckets": buckets}
    config = library().DebertaV2Config(
        hidden_size=8,
        num_attention_heads=2,
        relative_attention=True,
        max_relative_positions=8,
        attention_probs_dropout_prob=0.0,
        hidden_dropout_prob=0.0,
        **settings,
    )
    theirs, x = library().DisentangledSelfAttention(config).eval(), torch.randn(2, 13, 8)
    mine = DeBERTa(
        **SIZES,
        buckets=None if buckets < 0 else buckets,
        max_distance=8,
        share=share,
        norm=False,
        c2p="c2p" in terms,
        p2c="p2c" in terms,
    )
    attention = MultiHeadAttention(8, 2, causal=False)
    with torch.no_grad():
        mine.weight.normal_()
        for own, other in ((attention.q, "query"), (attention.k, "key"), (attention.v, "value")):
            own.load_state_dict(getattr(theirs, f"{other}_proj").state_dict())
        attention.out.load_state_dict({"weight": torch.eye(8), "bias": torch.zeros(8)})
        for name in () if share else [n for n, _ in mine.named_parameters() if n != "weight"]:
            kind, part = name.split("_")
            mine.get_parameter(name)[0] = getattr(getattr(theirs, f"pos_{kind}_proj"), part)
        mask = torch.ones(2, 1, 13, 13)
        want, _ = theirs(x, mask, rel_embeddings=mine.weight)
    torch.testing.assert_close(attention(x, mine), want, atol=1e-5, rtol=1e-5)


def test_one_table_serves_all_layers_and_each_may_project_it_by_weights_of_its_own():
    model = gn.EncoderOnly(11, 8, 2, 2, position="deberta")
    assert [n for n, _ in model.named_parameters() if ".positions." in n] == [
        f"stack.positions.0.{name}" for name in ("weight", "norm.weight", "norm.bias")
    ]
    own = DeBERTa(**SIZES, n_layers=2, share=False)
    assert own.key_weight.shape == own.query_weight.shape == (2, 8, 8)


def test_while_tokens_are_held_the_table_is_projected_once(monkeypatch):
    counted, plain = [], DeBERTa.project
    monkeypatch.setattr(DeBERTa, "project", lambda *given: counted.append(1) or plain(*given))
    model = gn.DecoderOnly(11, 8, 2, 2, position="deberta").eval()
    cache, ids = model.cache(), torch.randint(11, (1, 6))
    with torch.no_grad():
        steps = torch.cat([model(ids[:, t : t + 1], cache=cache) for t in range(6)], 1)
        assert len(counted) == 2
        torch.testing.assert_close(steps, model(ids), atol=1e-5, rtol=1e-5)


def test_where_every_distance_may_have_a_row_there_are_no_buckets():
    at = gn.Layout.dense(1, 9)
    few, none = (DeBERTa(**SIZES, buckets=buckets, max_distance=4) for buckets in (256, None))
    assert few.weight.shape == none.weight.shape == (8, 8)
    assert torch.equal(few.row(gaps(at, at)), none.row(gaps(at, at)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"buckets": 5}, "buckets must be even"),
        ({"max_distance": 0}, "max_distance at least 1"),
        ({"c2p": False, "p2c": False}, "c2p, p2c or both"),
    ],
)
def test_a_mistake_is_named(options, message):
    with pytest.raises(gn.BadValue, match=message):
        DeBERTa(**SIZES, **options)
