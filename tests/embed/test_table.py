"""The token table: lookup, scale, padding, width, size, pretrained rows."""

import math

import pytest
import torch
from torch import nn

import gnomon as gn
from gnomon.embed import check_ids, read_vectors


def test_four_ids_become_four_scaled_rows_of_512():
    """(50000, 512) on [[101, 7592, 2088, 102]] -> (1, 4, 512), rows times sqrt(512) = 22.627417."""
    table, ids = gn.TokenEmbedding(50_000, 512), torch.tensor([[101, 7592, 2088, 102]])
    x = table(ids)
    assert x.shape == (1, 4, 512)
    assert table.scale == pytest.approx(22.627417, abs=5e-7)
    torch.testing.assert_close(x[0], table.weight[ids[0]] * math.sqrt(512))


@pytest.mark.parametrize(
    ("vocab", "width", "scale", "ids"),
    [(10_000, 512, "sqrt", [[1, 2, 3, 4], [5, 6, 7, 8]]), (512, 128, None, [[76, 299, 412]])],
)
def test_shapes_are_batch_tokens_width(vocab, width, scale, ids):
    table, ids = gn.TokenEmbedding(vocab, width, scale=scale), torch.tensor(ids)
    assert table(ids).shape == (*ids.shape, width)
    if scale is None:
        assert torch.equal(table(ids), table.weight[ids])


@pytest.mark.parametrize(
    ("width", "dtype", "want"),
    [(3072, torch.bfloat16, 55.5), (2048, torch.bfloat16, 45.25), (3072, torch.float32, 55.42562584)],
)
def test_a_row_of_ones_becomes_the_root_of_the_width_as_its_dtype_has_it(width, dtype, want):
    table = gn.TokenEmbedding(2, width).to(dtype)
    with torch.no_grad():
        table.weight.fill_(1.0)
    x = table(torch.tensor([[1]])).detach()
    assert x.dtype == dtype
    assert float(x[0, 0, 0]) == pytest.approx(want, abs=4e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_a_rounded_root_is_rounded_before_it_multiplies(dtype):
    """In bfloat16 the two roots differ by 0.13 % at a width of 3072, and so do about a quarter of the products."""
    ids = torch.arange(40)[None]
    table = gn.TokenEmbedding(40, 3072, scale="rounded sqrt", std=0.02).to(dtype)
    factor = torch.tensor(3072**0.5, dtype=torch.float64).to(dtype)
    assert torch.equal(table(ids)[0], table.weight * factor)
    plain = gn.TokenEmbedding(40, 3072, scale="sqrt", std=0.02).to(dtype)
    plain.load_state_dict(table.state_dict())
    assert torch.equal(table(ids), plain(ids)) is (dtype == torch.float32)


@pytest.mark.parametrize("scale", ["sqrt", None, 3.0])
def test_a_lookup_is_a_one_hot_product(scale):
    table, ids = gn.TokenEmbedding(20, 8, scale=scale), torch.randint(20, (2, 5))
    one_hot = nn.functional.one_hot(ids, 20).float()
    torch.testing.assert_close(table(ids), one_hot @ table.weight * table.scale)


def test_untied_only_the_rows_in_the_batch_get_a_gradient():
    """Zero gradient is not no update: AdamW with weight decay moves all rows."""
    table = gn.TokenEmbedding(512, 8)
    table(torch.tensor([[76, 299, 412]])).square().sum().backward()
    assert table.weight.grad.abs().sum(1).nonzero().flatten().tolist() == [76, 299, 412]
    before = table.weight.detach().clone()
    torch.optim.AdamW(table.parameters(), lr=0.1, weight_decay=0.1).step()
    assert (table.weight != before).any(1).all()


def test_scaled_rows_start_at_the_size_of_a_sinusoid():
    """Multiplying by sqrt(D) assumes rows of deviation D^-0.5; with nn.Embedding's N(0, 1) position would drown."""
    table, ids = gn.TokenEmbedding(2000, 256), torch.arange(2000)[None]
    assert float(table(ids).detach().square().mean().sqrt()) == pytest.approx(1.0, rel=0.02)
    assert float(gn.TokenEmbedding(2000, 256, scale=None).weight.detach().std()) == pytest.approx(0.02, rel=0.02)
    assert float(gn.TokenEmbedding(2000, 256, std=0.5).weight.detach().std()) == pytest.approx(0.5, rel=0.02)


class TestPadding:
    def test_its_row_is_zero_after_building_drawing_anew_and_resizing(self):
        table = gn.TokenEmbedding(5, 4, padding_id=2)
        table.reset_parameters()
        table.resize(9)
        assert table(torch.tensor([[2, 3]]))[0].abs().sum(1).tolist()[0] == 0
        assert (table.weight.abs().sum(1) == 0).tolist() == [i == 2 for i in range(9)]

    def test_without_a_padding_token_no_row_is_zero(self):
        assert gn.TokenEmbedding(50, 4).weight.abs().sum(1).min() > 0

    @pytest.mark.parametrize("tied", [True, False])
    def test_it_stays_zero_while_the_model_trains(self, tied):
        """A tied head would send gradient to the padding row, which blocks only the lookup's."""
        model = gn.DecoderOnly(5, 4, 1, 1, tied=tied, padding_id=0, init_std=0.5)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.1)
        ids = torch.tensor([[0, 1, 2, 3]])
        for _ in range(3):
            loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[0, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        assert torch.equal(model.input.tokens.weight[0], torch.zeros(4))
        assert model.input.tokens.weight[1:].abs().sum(1).min() > 0

    def test_a_padding_id_outside_the_vocabulary_or_cut_off_is_refused(self):
        with pytest.raises(gn.BadValue, match="padding_id=5 is not one of the 5 token ids"):
            gn.TokenEmbedding(5, 4, padding_id=5)
        with pytest.raises(gn.BadValue, match="would cut off the padding token 4"):
            gn.TokenEmbedding(5, 4, padding_id=4).resize(3)


class TestNarrowTable:
    def test_it_is_widened_for_the_model_and_back_for_the_head(self):
        """ALBERT: x = s E[id] P and logits = h P^T E^T."""
        table, ids = gn.TokenEmbedding(30, 16, d_embed=4), torch.tensor([[1, 5]])
        P, E = table.widen.weight.T, table.weight
        assert E.shape == (30, 4)
        torch.testing.assert_close(table(ids)[0], E[[1, 5]] @ P * 4.0)
        h = torch.randn(1, 2, 16)
        torch.testing.assert_close(table.unembed(h), h @ P.T @ E.T)

    @pytest.mark.parametrize("width", [0, 17])
    def test_it_is_no_wider_than_the_model(self, width):
        with pytest.raises(gn.BadValue, match=f"between 1 and d_model=16, got {width}"):
            gn.TokenEmbedding(30, 16, d_embed=width)


class TestIds:
    @pytest.mark.parametrize(
        ("ids", "message"),
        [
            ([[1, 2], [3, 512]], r"token id 512 \(row 1, place 1\) is outside the vocabulary of 512 tokens, 0 to 511"),
            ([[-1, 2]], r"token id -1 \(row 0, place 0\)"),
            ([[1.0]], "integers"),
            ([1, 2], r"shape \(batch, tokens\).*got \(2,\)"),
            ([[]], r"got \(1, 0\)"),
        ],
    )
    def test_what_is_no_token_id_is_named_with_its_place(self, ids, message):
        with pytest.raises(gn.BadValue, match=message):
            gn.TokenEmbedding(512, 4)(torch.tensor(ids))

    def test_int32_ids_are_taken(self):
        table = gn.TokenEmbedding(9, 4)
        assert torch.equal(table(torch.tensor([[3]], dtype=torch.int32)), table(torch.tensor([[3]])))

    def test_ids_can_be_checked_before_anything_is_computed(self):
        check_ids(torch.tensor([[0, 8]]), 9)
        with pytest.raises(gn.BadValue, match="token id 9"):
            check_ids(torch.tensor([[0, 9]]), 9)


class TestResize:
    @pytest.mark.parametrize("size", [7, 16, 5])
    def test_rows_that_remain_keep_their_bits(self, size):
        table = gn.TokenEmbedding(7, 4)
        before = table.weight.detach().clone()
        table.resize(size)
        assert table.vocab_size == size
        assert torch.equal(table.weight[:7], before[:size])

    def test_new_rows_are_drawn_like_the_first_were(self):
        table = gn.TokenEmbedding(10, 64, std=0.5)
        table.resize(2000)
        assert float(table.weight[10:].detach().std()) == pytest.approx(0.5, rel=0.05)

    def test_a_frozen_table_stays_frozen_and_keeps_its_dtype(self):
        table = gn.TokenEmbedding(7, 4).bfloat16()
        table.weight.requires_grad_(False)
        table.resize(9)
        assert (table.weight.requires_grad, table.weight.dtype) == (False, torch.bfloat16)


class TestPretrained:
    GLOVE = "dog 1 2 3\nperro 4 5 6\n"
    WORD2VEC = "2 3\ndog 1.0 2.0 3.0 \nperro 4.0 5.0 6.0 \n"

    @pytest.mark.parametrize("text", [GLOVE, WORD2VEC])
    def test_files_of_both_customs_are_read(self, tmp_path, text):
        (tmp_path / "v.txt").write_text(text)
        vectors = read_vectors(tmp_path / "v.txt")
        assert {token: v.tolist() for token, v in vectors.items()} == {"dog": [1, 2, 3], "perro": [4, 5, 6]}

    def test_rows_are_filled_by_token_and_missing_ones_are_listed(self):
        table = gn.TokenEmbedding(4, 3, padding_id=3)
        before = table.weight.detach().clone()
        vectors = {"dog": torch.tensor([1.0, 2, 3]), "<pad>": torch.ones(3), "unused": torch.zeros(9)}
        missing = table.import_vectors(vectors, {"cat": 0, "dog": 2, "<pad>": 3})
        assert missing == ["cat"]
        assert table.weight[2].tolist() == [1, 2, 3]
        assert torch.equal(table.weight[[0, 1]], before[[0, 1]])
        assert table.weight[3].tolist() == [0, 0, 0]

    def test_a_vector_of_another_width_is_refused(self):
        with pytest.raises(gn.BadValue, match=r"vector of 'dog' has shape \(2,\), the table needs \(3,\)"):
            gn.TokenEmbedding(4, 3).import_vectors({"dog": torch.ones(2)}, {"dog": 0})

    def test_a_refused_vector_changes_no_row(self):
        table = gn.TokenEmbedding(4, 3)
        before = table.weight.detach().clone()
        with pytest.raises(gn.BadValue):
            table.import_vectors({"a": torch.ones(3), "dog": torch.ones(2)}, {"a": 0, "dog": 1})
        assert torch.equal(table.weight, before)

    def test_a_token_outside_the_table_is_refused(self):
        with pytest.raises(gn.BadValue, match=r"'dog' has id 4.*4 rows"):
            gn.TokenEmbedding(4, 3).import_vectors({"dog": torch.ones(3)}, {"dog": 4})

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("dog 1 2 3\nperro 4 5\n", "line 2: 2 numbers where 3 were expected"),
            ("dog 1 2 3\nperro 4 five 6\n", "line 2: not a token followed by numbers"),
            ("dog 1 2 3\n\nperro 4 5 6\n", "line 2: 0 numbers where 3 were expected"),
            ("", "holds no vectors"),
        ],
    )
    def test_a_line_that_does_not_fit_is_named(self, tmp_path, text, message):
        (tmp_path / "v.txt").write_text(text)
        with pytest.raises(gn.BadInput, match=message):
            read_vectors(tmp_path / "v.txt")

    def test_a_file_that_is_no_text_or_not_there_is_named(self, tmp_path):
        (tmp_path / "v.bin").write_bytes(b"\xff\xfe\x00\x80")
        for name in ("v.bin", "absent.txt"):
            with pytest.raises(gn.BadInput, match="cannot read vectors"):
                read_vectors(tmp_path / name)


@pytest.mark.parametrize(("vocab", "width"), [(0, 4), (4, 0)])
def test_a_table_has_rows_and_columns(vocab, width):
    with pytest.raises(gn.BadValue, match="at least 1"):
        gn.TokenEmbedding(vocab, width)
