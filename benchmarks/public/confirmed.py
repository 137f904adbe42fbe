"""Findings that were confirmed by hand, each with how, by the repository's code alone."""

COPY = "the copy's logits move when the original's weights are set to 0"
NONE = "a row of padding alone gives NaN in that row, and in no other"
AXIS = "adding 1 to the vector of padding moves the logits of real tokens after it; that of the source moves none"
#: (repository, model, law) -> how the finding was confirmed with the repository's code alone
CONFIRMED: dict[tuple[str, str, str], str] = {
    ("karpathy/minGPT", "GPT", "a deep copy is a model of its own"): COPY,
    ("karpathy/makemore", "Transformer", "a deep copy is a model of its own"): COPY,
    ("karpathy/makemore", "CausalBoW", "a deep copy is a model of its own"): COPY,
    (
        "karpathy/makemore",
        "CausalBoW",
        "order is seen",
    ): "turning round all tokens but the last moves its logits by 2e-7",
    ("brandokoch/attention-is-all-you-need-paper", "TransformerEncoderDecoder", "an empty row is harmless"): NONE,
    ("gordicaleksa/pytorch-original-transformer", "Transformer", "an empty row is harmless"): NONE,
    ("lucidrains/PaLM-pytorch", "PaLM", "call history"): (
        "backward() works, a text of 300 tokens is read in inference mode, and backward() raises"
    ),
    ("SamLynnEvans/Transformer", "Transformer", "sinusoids are as published"): (
        "its table is sin and cos of position / 10000^(2j / d), j counting channels; the paper's differs by 2.0"
    ),
    **{
        ("hyunwoongko/transformer", "Transformer, told of its padding", law): AXIS
        for law in ("left padding changes nothing", "interior padding changes nothing", "masked tokens get no gradient")
    },
}

__all__ = ["CONFIRMED"]
