"""What a model may be given, in one dataclass: the settings that its parts state, and those of a whole model.

A new setting of a part is a field of that part's settings, and nothing here (see `gnomon.settings`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from gnomon.attention.multihead import MultiHeadSettings, NHeads
from gnomon.blocks.experts import MixtureSettings
from gnomon.blocks.residual import ResidualSettings
from gnomon.embed.heads import LogitSettings
from gnomon.embed.input import InputSettings
from gnomon.kinds import Setting
from gnomon.positions import Spec
from gnomon.settings import DModel

Position = str | Spec | Sequence[str | Spec]
Window = int | None | Sequence[int | None]
Architecture = Literal["decoder-only", "encoder-only", "encoder-decoder"]
HeadActivation = Literal["relu", "gelu", "gelu_tanh", "silu", "tanh", "identity"]
HeadKind = Literal["tokens", "masked", "labels", "pooled", "classes"]
Pooling = Literal["first", "mean"]


@dataclass(frozen=True)
class Sizes:
    """Sizes"""

    # Beyond the largest of them a number is a mistake, and building would fill the memory first.
    vocab_size: Annotated[int, Setting("tokens of the vocabulary", least=1, most=2**31)]
    d_model: DModel
    n_layers: Annotated[int, Setting("blocks of each stack; 0: the tables alone", least=0, most=10_000)]
    n_heads: NHeads


@dataclass(frozen=True, kw_only=True)
class PositionSettings:
    """Position, and what a token sees"""

    position: Annotated[
        Position,
        Setting(
            "a name, gn.positions.get(...), or a list of these that repeats over the layers, 'rope, rope, none' (of "
            "encodings that act in attention)"
        ),
    ] = "rope"
    input_position: Annotated[
        str | Spec | Mapping[str, Any] | None,
        Setting("an encoding at the input besides one that acts in attention", source="MPNet, arXiv:2004.09297"),
    ] = None
    max_positions: Annotated[int | None, Setting("rows of a learned table", least=1, most=2**40)] = None
    causal: Annotated[
        bool, Setting("a token of a decoder-only model sees only what came before it; one of an encoder sees all")
    ] = True
    window: Annotated[
        Window,
        Setting(
            "nearest tokens seen, itself included; or a list of these and none ('all'), repeated over the layers",
            least=1,
            most=2**40,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class StackSettings:
    """Stack"""

    distinct_layers: Annotated[
        int | None,
        Setting(
            "blocks with weights of their own, each used by neighbouring layers; default all of them",
            least=1,
            most=10_000,
            source="ALBERT, arXiv:1909.11942",
        ),
    ] = None
    first_norm: Annotated[
        bool, Setting("a norm before the first attention, besides input_norm", source="ModernBERT, arXiv:2412.13663")
    ] = True


@dataclass(frozen=True, kw_only=True)
class EncoderHeadSettings:
    """Head of an encoder"""

    head: Annotated[
        HeadKind,
        Setting(
            "what it says: logits of 'tokens' or 'masked' ones, 'labels' of tokens, a 'pooled' vector, "
            "'classes' of rows"
        ),
    ] = "tokens"
    n_classes: Annotated[int | None, Setting("of head='labels' and head='classes'", least=1, most=2**20)] = None
    pooling: Annotated[Pooling, Setting("the first token's vector or the mean of all, of 'pooled' and 'classes'")] = (
        "mean"
    )
    pooler: Annotated[bool, Setting("a layer after pooling", source="BERT, arXiv:1810.04805")] = False
    d_pooled: Annotated[
        int | None, Setting("width of the vector after the pooler of 'pooled'; default d_model", least=1, most=2**20)
    ] = None
    unit: Annotated[bool, Setting("the vector of 'pooled' is brought to length 1")] = False
    head_activation: Annotated[
        HeadActivation | None, Setting("of the head's own layer; default gelu of 'masked', tanh of a pooler")
    ] = None


@dataclass(frozen=True, kw_only=True)
class SourceSettings:
    """Encoder-decoder"""

    n_decoder_layers: Annotated[
        int | None, Setting("blocks of the decoder; default n_layers", least=0, most=10_000)
    ] = None
    source_vocab_size: Annotated[
        int | None,
        Setting("tokens of a table of the source's own; default one table for both sides", least=1, most=2**31),
    ] = None
    source_positions: Annotated[
        bool,
        Setting("positions, and a norm, of the source's own beside the shared table", source="BART, arXiv:1910.13461"),
    ] = False


@dataclass(frozen=True)
class ModelSettings(  # in the order of help from below
    SourceSettings,
    EncoderHeadSettings,
    LogitSettings,
    InputSettings,
    StackSettings,
    ResidualSettings,
    MixtureSettings,
    MultiHeadSettings,
    PositionSettings,
    Sizes,
):
    """What a model is given: gn.DecoderOnly(vocab_size, d_model, n_layers, n_heads, position="alibi", ...)."""


__all__ = ["Architecture", "HeadActivation", "HeadKind", "ModelSettings", "Pooling", "Position", "Sizes", "Window"]
