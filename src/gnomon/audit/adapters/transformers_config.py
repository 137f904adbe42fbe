"""What a model of the transformers library says of itself: its config, and the names of its parts."""

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gnomon.audit.adapters.angles import expected_frequencies
from gnomon.audit.adapters.transformers_docs import BY_LENGTH
from gnomon.audit.target import NotApplicable, Shift
from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.rope import ANY, read_rope
from gnomon.errors import BadInput
from gnomon.models.model_settings import Architecture
from gnomon.positions import RoPE
from gnomon.shapes import Float

#: last parts of the names of tables of absolute positions, as its models call them
TABLE = re.compile(r"wpe|(embed|encode)?_?pos(ition)?(al)?s?_?(embed|encod)?(ding|ing)?s?|embed_positions|w_pe")
FIXED = ("embed_positions", "pos_encoding")  #: those of GPT-J and CTRL, which are not trained
ENDS = ("mpt",)  #: types of models whose biases are made for `max_seq_len` tokens, which is where they end


@dataclass(frozen=True)
class Facts:
    """What Target is told about a model, and what its adapter has to know.

    blocks            how many the stack has that is asked; depth: those of all stacks
    head              whether it gives logits over its vocabulary
    first_position    the number its position_ids begin with
    pad_says_padding  the padding id, of a model that reads off the ids where padding is
    rotations         the kinds of its rotations, as its config calls them
    unrotated         whether its config says that no layer is rotated
    routed            whether its tokens are sent to experts
    """

    architecture: Architecture
    vocab: int
    source_vocab: int
    blocks: int
    depth: int
    special: frozenset[int]
    window: int | None
    limit: int | None
    table_ends: bool
    shift: Shift
    head: bool
    first_position: int
    pad_says_padding: int | None
    rotations: tuple[str, ...]
    unrotated: bool
    routed: bool


def facts(model: Any) -> Facts:
    """Read them off a model."""
    config, pairs = text_config(model), bool(model.config.is_encoder_decoder)
    stack = model.get_decoder() if pairs else model
    head = model.get_output_embeddings()
    embedding = stack.get_input_embeddings()
    vocab = head.out_features if isinstance(head, nn.Linear) else embedding.weight.shape[0]
    tables = list(_tables(stack))
    after = next((table.padding_idx for table in tables if table.padding_idx is not None), None)
    pad = (config.pad_token_id if after is None else after) if _reads_ids(model) else None
    counted = _first_position(stack)
    first = counted if after is None else after + 1
    rotations = tuple(str(rope.get("rope_type", "default")) for rope in _rope_settings(config))
    blocks = (_depth(model.config, _DECODER) if pairs else None) or _depth(config, _DECODER) or 0
    encoder = (_depth(model.config, _ENCODER) or blocks) if pairs else 0
    return Facts(
        architecture="encoder-decoder" if pairs else "decoder-only" if _causal(model, config) else "encoder-only",
        vocab=min(vocab, embedding.weight.shape[0]),
        source_vocab=model.get_input_embeddings().weight.shape[0],
        blocks=blocks,
        depth=blocks + encoder,
        special=frozenset(_special(model)) | (frozenset() if pad is None else {pad}),
        window=_window(config),
        limit=_limit(stack, config, tables, first),
        table_ends=bool(tables) or bool(list(_fixed_tables(stack))) or config.model_type in ENDS,
        shift=_shift(model, rotations, tables),
        head=isinstance(head, nn.Linear),
        first_position=first if pad is not None else counted,
        pad_says_padding=pad,
        rotations=rotations,
        unrotated=not any(getattr(config, "no_rope_layers", None) or [1]),
        routed=any(re.search("Expert|Router|Moe", type(part).__name__) for part in model.modules()),
    )


def text_config(model: Any) -> Any:
    """The config of the part that reads text; of a pair, its decoder's."""
    return model.config.get_text_config(decoder=True)


_DECODER = ("decoder_layers", "num_decoder_layers", "num_hidden_layers")
_ENCODER = ("encoder_layers", "num_encoder_layers", "num_layers", "num_hidden_layers")


def _depth(config: Any, names: tuple[str, ...]) -> int | None:
    """Blocks of a stack, under the first of these names that the config knows."""
    return next((int(n) for name in names if (n := getattr(config, name, None)) is not None), None)


def _causal(model: Any, config: Any) -> bool:
    """Whether its tokens look back only: its attention says so, else its config, else the name of its class."""
    said = [part.is_causal for part in model.modules() if isinstance(getattr(part, "is_causal", None), bool)]
    if said:
        return any(said)
    decoder = getattr(config, "is_decoder", None)
    if getattr(config, "attn_type", None) == "bi":  # XLNet
        return False
    return bool(decoder) or type(model).__name__.startswith(_CAUSAL) or (decoder is None and model.can_generate())


_CAUSAL = ("Bloom", "OpenAIGPT", "Mpt", "XGLM", "GPTNeoXJapanese", "CpmAnt", "TrOCR")  #: whose attention does not say


def _special(model: Any) -> Iterator[int]:
    """Ids that its configs name."""
    configs = [model.config, text_config(model), *([model.generation_config] if model.can_generate() else [])]
    for config in configs:
        for key, value in config.to_dict().items():
            if re.search(r"token_(id|index|ids)$", key):
                yield from (i for i in (value if isinstance(value, list) else [value]) if isinstance(i, int) and i >= 0)


def _window(config: Any) -> int | None:
    """The width of the window, where each layer has it."""
    width = getattr(config, "sliding_window", None)
    types = set(getattr(config, "layer_types", None) or ["sliding_attention"])
    if width is None or types != {"sliding_attention"} or getattr(config, "use_sliding_window", True) is False:
        return None
    return int(width)


def _tables(stack: nn.Module) -> Iterator[Any]:
    """Its tables of absolute positions: nn.Embedding, and what I-BERT has in its place."""
    for name, part in stack.named_modules():
        table = isinstance(part, nn.Embedding) or type(part).__name__ == "QuantEmbedding"
        if table and TABLE.fullmatch(name.rpartition(".")[2]):
            yield part


def _first_position(stack: nn.Module) -> int:
    """The first number in the list of positions that it keeps, where it keeps one: 2 in YOSO."""
    kept = (b for name, b in stack.named_buffers() if name.rpartition(".")[2] == "position_ids" and b.numel())
    return next((int(b.flatten()[0]) for b in kept), 0)


def _fixed_tables(stack: nn.Module) -> Iterator[Float]:
    """Its tables of sines and cosines, one row for each position, which is where they end."""
    return (b for name, b in stack.named_buffers() if name.rpartition(".")[2] in FIXED and b.dim() == 2)


def _reads_ids(model: Any) -> bool:
    """Whether it takes the places of padding from the ids themselves, by a method or a function (RoBERTa and kin)."""
    method = "create_position_ids_from_input_ids"
    own = vars(sys.modules[type(model).__module__])
    return method in own or any(getattr(part, method, None) is not None for part in model.modules())


def _limit(stack: nn.Module, config: Any, tables: list[Any], first: int) -> int | None:
    rows = [len(table.weight) - int(getattr(table, "offset", first)) for table in tables]
    rows += [len(table) for table in _fixed_tables(stack)]
    if rows:
        return min(rows) - int(getattr(config, "ngram", 0) > 0)  # ProphetNet looks a place ahead
    trained = getattr(config, "max_position_embeddings", None) or getattr(config, "max_seq_len", None)
    for rope in _rope_settings(config):
        trained = rope.get("original_max_position_embeddings") or trained
    return int(trained) if trained is not None and trained > 0 else None


def _rope_settings(config: Any) -> list[dict[str, Any]]:
    """The settings of its rotations: one, or one for each type of layer."""
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None)
    if not rope:
        return []
    nested = [part for part in rope.values() if isinstance(part, dict)]
    return nested or [rope]


def _shift(model: Any, rotations: tuple[str, ...], tables: list[Any]) -> Shift:
    if tables:
        return "changed"
    turns = any("Rotary" in type(part).__name__ for part in model.modules())
    return "kept" if turns and not set(rotations) & set(BY_LENGTH) else "unknown"


def accepted_arguments(model: Any) -> frozenset[str]:
    """Arguments that its forward takes: its own, and those of the model inside it if it hands others on to that."""
    own = frozenset(inspect.signature(model.forward).parameters)
    hands_on = "kwargs" in own and _HANDS_ON.search(inspect.getsource(model.forward)) is not None
    return own | frozenset(inspect.signature(model.base_model.forward).parameters) if hands_on else own


_HANDS_ON = re.compile(r"self\.(?!loss_function)\w+\([^()]*\*\*kwargs")


def detects_packing(model: Any) -> bool:
    """Whether its masks are made by the library's function for causal ones, which finds packed documents where it is
    given positions and no mask; some models make a mask of ones themselves."""
    source = inspect.getsource(sys.modules[type(model).__module__])
    return _FINDS.search(source) is not None and _ONES.search(source) is None


_FINDS = re.compile(
    r"(create_causal_mask|mask_function)\([^()]*position_ids=|mask_kwargs = \{[^{}]*\"position_ids\": position_ids"
)
_ONES = re.compile(r"attention_mask = torch\.ones")


def blocks(stack: nn.Module, n: int) -> nn.ModuleList | None:
    """The outermost list of n parts."""
    return next((m for m in stack.modules() if isinstance(m, nn.ModuleList) and len(m) == n), None)


# ------------------------------------------------------------------ rotations


@dataclass(frozen=True)
class Rotation:
    """A model's module that makes cosines and sines, and what its config says of them.

    layer_type  which of the rotations, where each type of layer has its own
    """

    module: nn.Module
    config: Any
    layer_type: str | None

    def turned(self, length: int, device: torch.device) -> tuple[Float, Float]:
        """Cosines and sines (T, pairs) of a text of this length."""
        positions = torch.arange(length, device=device)[None]
        like = torch.zeros(1, length, 1, device=device)
        more = () if self.layer_type is None else (self.layer_type,)
        out = self.module(like, positions, *more)
        if isinstance(out, torch.Tensor) and out.is_complex():
            return out[0].real, out[0].imag
        if not isinstance(out, tuple) or len(out) != 2 or out[0].dim() != 3 or out[0].shape[1] != length:
            raise NotApplicable(f"{type(self.module).__name__} gives no cosines and sines (batch, tokens, channels)")
        cos, sin = out[0][0], out[1][0]
        half = cos.shape[1] // 2
        if torch.equal(cos[:, :half], cos[:, half:]):
            return cos[:, :half], sin[:, :half]
        if torch.equal(cos[:, 0::2], cos[:, 1::2]):
            return cos[:, 0::2], sin[:, 0::2]
        return cos, sin

    def promised(self, length: int) -> tuple[list[float] | Float, float]:
        """Frequencies of the pairs in a text of this length and the factor, by the formula its config names."""
        c = self.config
        d_head = getattr(c, "qk_rope_head_dim", None) or getattr(c, "head_dim", None)
        d_head = int(d_head or c.hidden_size // c.num_attention_heads)
        try:
            keys = Keys(c.to_dict(), Path("config.json"))
            own = keys.part("rope_parameters")
            if own is not None and self.layer_type is not None and own.has(self.layer_type):
                own = own.part(self.layer_type)
            parts = None if self.layer_type is None else {"rope_parameters": own}
            spec = read_rope(keys, d_head, ANY, parts)
        except BadInput as error:
            raise NotApplicable(f"its rotation is none that Gnomon has a formula of: {error}") from error
        rope = spec.build(d_head=d_head)
        assert isinstance(rope, RoPE)
        return expected_frequencies(rope, length)


def rotation(model: Any) -> Rotation | None:
    """The first module of cosines and sines that a model has, and the type of layer it is asked about."""
    for part in model.modules():
        names = [name for name, _ in part.named_buffers(recurse=False) if name.endswith("inv_freq")]
        own = [name for name in names if "original" not in name]
        if "Rotary" in type(part).__name__ and own:
            layer_type = own[0].removesuffix("inv_freq").rstrip("_")
            return Rotation(part, getattr(part, "config", text_config(model)), layer_type or None)
    return None


__all__ = ["Facts", "Rotation", "accepted_arguments", "blocks", "detects_packing", "facts", "rotation", "text_config"]
