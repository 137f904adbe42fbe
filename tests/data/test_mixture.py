"""Several streams by weight: exact shares, one row the same however it is asked for, each stream whole in a pass."""

from collections import Counter

import numpy as np
import pytest

from gnomon.data import Corpus, LMBatches, Mixture, Tokenizer, TokenStore, document_lengths
from gnomon.data.mixture import BLOCK, shares
from gnomon.errors import BadValue


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> list[TokenStore]:
    folder = tmp_path_factory.mktemp("tokens")
    texts = (["a" * 40, "aa" * 30], ["b" * 90], ["c" * 20])
    return [TokenStore.open(Corpus.from_texts(each), Tokenizer.bytes(), folder) for each in texts]


def test_rows_come_in_the_ratio_of_the_weights(stores):
    mixture = Mixture(stores, [5, 3, 2], batch_size=100, length=4, seed=0)
    found = Counter(id(store) for step in range(BLOCK // 100) for store, _ in mixture.places(step))
    assert [found[id(store)] for store in stores] == [5000, 3000, 2000]


def test_a_batch_is_a_function_of_its_step_alone(stores):
    mixture, again = (Mixture(stores, [1, 1, 1], batch_size=7, length=4, seed=3) for _ in range(2))
    batches = [mixture.batch(step) for step in range(40)]
    assert all(np.array_equal(again.batch(step), batches[step]) for step in reversed(range(40)))
    other = Mixture(stores, [1, 1, 1], batch_size=7, length=4, seed=4)
    assert not all(np.array_equal(other.batch(step), batches[step]) for step in range(3))


def test_each_stream_is_gone_through_as_if_it_were_alone(stores):
    mixture, alone = Mixture(stores, [1, 3, 1], 10, 4, seed=0), LMBatches(stores[1], 10, 4, seed=0)
    places = [start for step in range(50) for store, start in mixture.places(step) if store is stores[1]]
    assert places == [alone.place(n)[1] for n in range(len(places))]


def test_weights_that_cannot_be_are_named(stores):
    for weights, message in (
        ([1, 2], "3 sources need as many weights, got 2"),
        ([1, 0, 1], "must be numbers above 0, got 1, 0, 1"),
        ([1, float("inf"), 1], "must be numbers above 0"),
        ([1, 1, 1e-9], "gives a source no row"),
    ):
        with pytest.raises(BadValue, match=message):
            Mixture(stores, weights, 2, 4, seed=0)


def test_shares_add_up():
    assert shares([1, 1, 1], 10) == [4, 3, 3]
    assert sum(shares([0.1, 0.7, 0.2, 3e-4], 9973)) == 9973


def test_a_window_divides_where_documents_begin(stores):
    store = stores[0]  # 40 tokens and an end, then 60 and an end
    assert document_lengths(store, 0, 10) == [10]
    assert document_lengths(store, 38, 10) == [3, 7]
    assert document_lengths(store, 41, 10) == [10]
    assert document_lengths(store, 0, 102) == [41, 61]
