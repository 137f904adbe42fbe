"""What the documentation of the transformers library says of a model that breaks a law on purpose.

Each entry is a sentence of the page that the link leads to.
"""

from collections.abc import Mapping

from gnomon.audit.outside.target import Because

PAGE = "https://huggingface.co/docs/transformers/model_doc/{}"


def by_design(model_type: str) -> Mapping[str, Because]:
    """Law -> what the page of this type of model says."""
    if model_type not in RIGHT:
        return {}
    page, says = RIGHT[model_type]
    return {law: Because(f'its page says: "{says}"', PAGE.format(page)) for law in LEFT}


#: laws that a model breaks which counts padding on the left as positions
LEFT = ("left padding changes nothing",)
RIGHT: Mapping[str, tuple[str, str]] = {
    "gpt2": ("gpt2", "Pad inputs on the right because GPT-2 uses absolute position embeddings."),
    "gpt_neo": ("gpt_neo", "Pad inputs on the right because GPT-Neo uses absolute position embeddings."),
    "biogpt": ("biogpt", "Pad inputs on the right because BioGPT uses absolute position embeddings."),
    "openai-gpt": ("openai-gpt", "Inputs should be padded on the right because GPT uses absolute position embeddings."),
    "bert": ("bert", "Inputs should be padded on the right because BERT uses absolute position embeddings."),
    "led": ("led", "Pad inputs on the right. LED uses absolute position embeddings."),
    **{
        page: (page, f"{name} is a model with absolute position embeddings so it's usually advised to pad the inputs on "
        "the right rather than the left.")
        for page, name in (
            ("albert", "ALBERT"), ("bart", "BART"), ("blenderbot", "Blenderbot"), ("ctrl", "CTRL"),
            ("blenderbot-small", "Blenderbot Small"), ("mobilebert", "MobileBERT"), ("prophetnet", "ProphetNet"),
        )
    },
}  # fmt: skip

__all__ = ["by_design"]
