"""T5's bias: bucket edges as published, both directions, one shared table."""

import pytest
import torch

import gnomon as gn
from gnomon.positions import T5

GAPS = torch.arange(-300, 301)


def buckets(gaps, **options):
    return T5(1, **options).bucket(torch.as_tensor(gaps)).tolist()


def test_bidirectional_buckets_are_the_published_ones():
    """Relative position key - query; 32 buckets, the second half for keys ahead."""
    gaps = [0, -1, 1, -7, 7, -8, 8, 15, -16, 16, 32, 128, -128, 100_000]
    assert buckets(gaps, causal=False) == [0, 1, 17, 7, 23, 8, 24, 25, 10, 26, 28, 31, 15, 31]


def test_causal_buckets_are_exact_up_to_15_and_logarithmic_after():
    gaps = [5, 0, -15, -16, -18, -19, -112, -113, -128, -100_000]
    assert buckets(gaps) == [0, 0, 15, 16, 16, 17, 30, 31, 31, 31]


def first_distances(**options):
    """The least distance back of each bucket."""
    found = {}
    for distance, bucket in enumerate(buckets(-torch.arange(400), **options)):
        found.setdefault(bucket, distance)
    return list(found.values())


def test_every_bucket_begins_where_it_should():
    """Edges 16, 32 and 64 are whole numbers in the formula and must not fall one bucket lower by rounding."""
    assert first_distances(causal=False) == [*range(8), 8, 12, 16, 23, 32, 46, 64, 91]
    assert first_distances() == [*range(16), 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (32, 64), (16, 100), (8, 20)])
def test_buckets_are_those_of_t5_in_transformers(causal, n_buckets, max_distance):
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    want = t5.T5Attention._relative_position_bucket(
        GAPS, bidirectional=not causal, num_buckets=n_buckets, max_distance=max_distance
    )
    got = T5(1, causal=causal, n_buckets=n_buckets, max_distance=max_distance).bucket(GAPS)
    # Theirs takes a float32 logarithm: at an edge that is a whole number it may fall one bucket short of the formula.
    differs = (got != want).nonzero().flatten().tolist()
    assert all(int(got[i]) == int(want[i]) + 1 for i in differs)
    assert len(differs) <= 4
    if (n_buckets, max_distance) == (32, 128):
        assert differs == []


def test_the_bias_is_one_number_per_bucket_and_head():
    """A table that counts, as in the published code: bias (H, T, S) reads the bucket of key - query."""
    t5 = T5(2)
    with torch.no_grad():
        t5.weight.copy_(torch.arange(32)[:, None] + torch.tensor([0.0, 100.0]))
    bias = t5.bias_tensor(gn.Layout.dense(1, 20))[0]
    assert bias[0, 19, [19, 18, 4, 3, 0]].tolist() == [0, 1, 15, 16, 17]
    assert torch.equal(bias[1], bias[0] + 100)


def test_one_table_serves_all_layers():
    model = gn.DecoderOnly.from_preset("mini-llama", position="t5")
    tables = [name for name, _ in model.named_parameters() if name.startswith("stack.positions.")]
    assert tables == ["stack.positions.0.weight"]
    assert all(model.position_of(layer) is model.position_of(0) for layer in range(4))


def test_the_gradient_of_a_bucket_is_the_sum_over_its_pairs():
    t5 = T5(1, n_buckets=4, max_distance=4)
    t5.bias_tensor(gn.Layout.dense(1, 5)).sum().backward()
    pairs = [0] * 4
    for q in range(5):
        for k in range(5):
            pairs[buckets([k - q], n_buckets=4, max_distance=4)[0]] += 1
    assert t5.weight.grad[:, 0].tolist() == pairs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_distance": 16}, "must exceed the 16 distances"),
        ({"n_buckets": 3, "causal": False}, "n_buckets must be even and at least 4, got 3"),
        ({"n_buckets": 1}, "at least 2, got 1"),
    ],
)
def test_a_mistake_is_named(options, message):
    with pytest.raises(gn.BadValue, match=message):
        T5(2, **options)
