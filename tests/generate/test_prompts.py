"""Prompts: every form people have them in, and a clear word about the others."""

import numpy as np
import pytest
import tokenizers
import torch
from tokenizers import processors

from gnomon.data import Tokenizer
from gnomon.errors import BadValue
from gnomon.generate.prompts import encode_prompts

BYTES = Tokenizer.bytes()


@pytest.mark.parametrize(
    ("prompts", "rows"),
    [
        ("hi", [[104, 105]]),
        (["hi", "x"], [[104, 105], [120]]),
        ([104, 105], [[104, 105]]),
        ((104, 105), [[104, 105]]),
        ([[1, 2, 3], [4]], [[1, 2, 3], [4]]),
        (["hi", [7]], [[104, 105], [7]]),
        (torch.tensor([5, 6]), [[5, 6]]),
        (torch.tensor([[5, 6], [7, 8]], dtype=torch.int32), [[5, 6], [7, 8]]),
        ([torch.tensor([5, 6]), torch.tensor([7])], [[5, 6], [7]]),
        (np.array([[5, 6], [7, 8]]), [[5, 6], [7, 8]]),
        (np.array([5, 6]), [[5, 6]]),
        ("", [[256]]),
        (["", [], "x"], [[256], [256], [120]]),
        (torch.zeros(2, 0, dtype=torch.long), [[256], [256]]),
        ("<|endoftext|>", [list(b"<|endoftext|>")]),
    ],
)
def test_every_form_becomes_rows_of_ids(prompts, rows):
    assert encode_prompts(prompts, BYTES, 257) == rows


@pytest.mark.parametrize(
    ("prompts", "says"),
    [
        ([], "there are no prompts"),
        (torch.zeros(0, 3, dtype=torch.long), "there are no prompts"),
        (5, "prompts must be a text, token ids, or a list of these, got 5"),
        ([1, [2]], "a prompt must be a text or a list of token ids, got 1"),
        ([1.5, 2.5], "a prompt must be a text or a list of token ids"),
        (torch.zeros(1, 2), "whole numbers, (tokens,) or (batch, tokens); got torch.float32 of shape (1, 2)"),
        (torch.zeros(1, 2, 3, dtype=torch.long), "of shape (1, 2, 3)"),
        ([[1], [2, 300]], "token id 300 (row 1, place 1) is outside the vocabulary of 257 tokens, 0 to 256"),
        ([-1], "token id -1 (row 0, place 0)"),
    ],
)
def test_what_is_no_prompt_is_refused(prompts, says):
    with pytest.raises(BadValue) as error:
        encode_prompts(prompts, BYTES, 257)
    assert says in str(error.value)


def test_text_needs_a_tokenizer():
    with pytest.raises(BadValue, match="no tokenizer to read a text with"):
        encode_prompts("hi", None, 257)


def test_an_empty_prompt_needs_a_token_to_start_from():
    with pytest.raises(BadValue, match="prompt 1 is empty and there is no end-of-text token to start from"):
        encode_prompts([[1], []], None, 257)


def test_an_empty_prompt_does_not_start_a_document_in_the_middle_of_one():
    with pytest.raises(BadValue, match="row 0 gives the model no token to read"):
        encode_prompts("", BYTES, 257, empty=False)


def test_the_callers_lists_are_left_alone():
    mine = [[], [1]]
    encode_prompts(mine, BYTES, 257)[1].append(5)
    assert mine == [[], [1]]


def framed() -> Tokenizer:
    """A tokenizer of bytes whose texts stand between <s> (257) and </s> (258)."""
    core = tokenizers.Tokenizer.from_str(Tokenizer.bytes().to_json())
    core.add_special_tokens(["<s>", "</s>"])
    marks = [("<s>", 257), ("</s>", 258)]
    core.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=marks)
    return Tokenizer(core.to_str())


def test_a_text_begins_with_exactly_one_begin_of_text() -> None:
    """And ends open: what comes next is to be written. A text that goes on from a cache has begun already, a source
    has an end, and ids are taken as they are. The string "<s>" in a text is text."""
    t = framed()
    assert encode_prompts(["a", "<s>", ""], t, 300) == [[257, 97], [257, *b"<s>"], [257]]
    assert encode_prompts(["a"], t, 300, empty=False) == [[97]]
    assert encode_prompts(["a"], t, 300, kind="source") == [[257, 97, 258]]
    assert encode_prompts([[97]], t, 300) == [[97]]
    with pytest.raises(BadValue, match="source 0 is empty"):
        encode_prompts([""], t, 300, kind="source")
