"""How byte-level vocabularies cut a text into words first, which no merge crosses: the published patterns."""

from collections.abc import Callable

from tokenizers import Regex, pre_tokenizers

# Those of Llama 3, Qwen 2 and BLOOM; GPT-2's is the library's own.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"

PreTokenizers = list[pre_tokenizers.PreTokenizer]


def gpt2() -> PreTokenizers:
    """GPT-2's own words."""
    return [pre_tokenizers.ByteLevel(add_prefix_space=False)]


def digits() -> PreTokenizers:
    """GPT-2's words, with each digit a word of its own."""
    return [pre_tokenizers.Digits(individual_digits=True), *gpt2()]


def pattern(regex: str) -> Callable[[], PreTokenizers]:
    """The words that a pattern finds."""
    return lambda: [
        pre_tokenizers.Split(Regex(regex), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]


__all__ = ["BLOOM", "LLAMA3", "QWEN2", "PreTokenizers", "digits", "gpt2", "pattern"]
