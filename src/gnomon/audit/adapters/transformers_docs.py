"""What the documentation of the transformers library says of a model that breaks a law on purpose.

Each entry is a sentence of the page that the link leads to.
"""

from collections.abc import Collection, Mapping

from gnomon.audit.target import Because

DOCS = "https://huggingface.co/docs/transformers/"
ONE_SIDE = Because(
    'padding is put on one side: "padding_side: The side on which the model should have padding applied. Should be '
    "selected between ['right', 'left']\"",
    f"{DOCS}main_classes/tokenizer",
)
CONTINUED = Because(
    'its tutorial says: "Since LLMs are not trained to continue from pad tokens, your input needs to be left-padded."',
    f"{DOCS}llm_tutorial#wrong-padding-side",
)
#: rotations whose table depends on how long the text is -> what the library says of them
BY_LENGTH: Mapping[str, Because] = {
    "dynamic": Because(
        'its angles follow the length of the text: "NTK-aware scaling computed by rescaling frequency base (θ) for '
        'longer context"',
        f"{DOCS}internal/rope_utils",
    ),
    "longrope": Because(
        'its angles follow the length of the text: "Longrope uses long factor if sequence is larger than original '
        'pretraining length, short otherwise."',
        "https://github.com/huggingface/transformers/blob/main/src/transformers/modeling_rope_utils.py",
    ),
}
#: of a model none of whose layers is to be rotated
UNROTATED = Because(
    'its config says which layers are rotated, and none is: "A `1` at an index position indicates that the '
    "corresponding layer will use RoPE, while a `0` indicates that it's a NoPE layer.\"",
    f"{DOCS}model_doc/smollm3#transformers.SmolLM3Config",
)
#: of every model
ALL: Mapping[str, Because] = {
    "interior padding changes nothing": ONE_SIDE,
    "interior padding with positions changes nothing": ONE_SIDE,
    "rows padded on the right decode at their own places": CONTINUED,
}
#: what a model breaks that counts padding on the left as positions
LEFT = (
    "left padding changes nothing",
    "padded rows decode at their own places",
    "source padding on the left changes nothing",
)


def by_design(model_type: str, rotations: Collection[str], unrotated: bool = False) -> Mapping[str, Because]:
    """Law -> what the documentation says about this type of model with rotations of these kinds, or none at all."""
    said = dict(ALL)
    if unrotated:
        said["a position reaches attention"] = UNROTATED
    if model_type in RIGHT:
        page, says = RIGHT[model_type]
        said |= dict.fromkeys(LEFT, Because(f'its page says: "{says}"', f"{DOCS}model_doc/{page}"))
    for kind in sorted(set(rotations) & set(BY_LENGTH)):
        said["prefix = beginning past the limit"] = BY_LENGTH[kind]
    return said


#: types of models whose page says so, with the page and the sentence
RIGHT: Mapping[str, tuple[str, str]] = {
    "gpt2": ("gpt2", "Pad inputs on the right because GPT-2 uses absolute position embeddings."),
    "gpt_neo": ("gpt_neo", "Pad inputs on the right because GPT-Neo uses absolute position embeddings."),
    "biogpt": ("biogpt", "Pad inputs on the right because BioGPT uses absolute position embeddings."),
    "openai-gpt": ("openai-gpt", "Inputs should be padded on the right because GPT uses absolute position embeddings."),
    "bert": ("bert", "Inputs should be padded on the right because BERT uses absolute position embeddings."),
    **{
        page: (page, "Inputs should be padded on the right because BigBird uses absolute position embeddings.")
        for page in ("big_bird", "bigbird_pegasus")
    },
    "led": ("led", "Pad inputs on the right. LED uses absolute position embeddings."),
    **{
        page: (
            page,
            f"{name} is a model with absolute position embeddings so it's usually advised to pad the inputs "
            "on the right rather than the left.",
        )
        for page, name in (
            ("albert", "ALBERT"),
            ("bart", "BART"),
            ("blenderbot", "Blenderbot"),
            ("ctrl", "CTRL"),
            ("blenderbot-small", "Blenderbot Small"),
            ("mobilebert", "MobileBERT"),
            ("prophetnet", "ProphetNet"),
            ("squeezebert", "SqueezeBERT"),
        )
    },
}

__all__ = ["ALL", "BY_LENGTH", "LEFT", "RIGHT", "UNROTATED", "by_design"]
