"""What the arguments of somebody's forward are for: told by their names, and believed where a look bears it out.

A name is taken apart into words. "src_token_ids", "encoderInput" and "sources" speak of a source, "trg_seq", "tgt" and
"decoder_input_ids" of a target; "inputs" and "x" of a text, which is a source where a target stands beside it.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import nn

from gnomon.errors import BadValue
from gnomon.shapes import Float, Int

Kind = Literal["source", "target", "text", "other"]
Pair = Callable[[Any, Int, Int], Any]  #: (model, source, ids) -> what the model returns

SOURCE = {"src", "source", "sources", "enc", "encoder"}
TARGET = {"trg", "tgt", "target", "targets", "dec", "decoder"}
#: words that say no more than that it is a text
TEXT = {
    "seq",
    "seqs",
    "sequence",
    "sequences",
    "id",
    "ids",
    "idx",
    "indices",
    "token",
    "tokens",
    "word",
    "words",
    "batch",
    "input",
    "inputs",
    "in",
    "text",
    "texts",
    "sentence",
    "sentences",
    "x",
}
#: beginnings of the names of optional arguments that laws ask about, and the argument of Torch that tells of them
TELLS = (
    ("masked", re.compile(r"mask|pad", re.IGNORECASE)),
    ("placed", re.compile(r"pos(ition)?s?(_|$)", re.IGNORECASE)),
    ("stepped", re.compile(r"past|cache|(^|_)kv|mems?$|memor(y|ies)$|state|start_?pos", re.IGNORECASE)),
    ("loss", re.compile(r"target|label|(^|_)y$", re.IGNORECASE)),
    ("packed", re.compile(r"(doc|seq(uence)?|segment)_?ids?$|cu_?seqlens", re.IGNORECASE)),
)

#: argument -> where it is kept, and what it is given where there is a source
FUNCTIONS: Mapping[str, tuple[str, str]] = {
    "masked": ("masked", "model, source, ids, mask"),
    "placed": ("placed", "model, source, ids, positions"),
    "placed_mask": ("placed_mask", "model, source, ids, mask, positions"),
    "packed": ("packed", "model, source, ids, docs"),
    "stepped": ("stepped", "model, state, source, ids"),
    "loss": ("trained_on", "model, source, ids"),
    "padded_loss": ("trained_padded", "model, source, ids, mask"),
}
#: what a language model may want to be given as what it is to predict
LABELS = re.compile(r"(targets?|labels?|y|next_?(ids|tokens))$", re.IGNORECASE)


def kind(name: str) -> Kind:
    """What an argument of this name holds."""
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    found: Kind = "text" if words and all(word in TEXT for word in words) else "other"
    for word in words:
        if word in SOURCE or word in TARGET:
            rest = [other for other in words if other != word]
            side: Kind = "source" if word in SOURCE else "target"
            return side if all(other in TEXT for other in rest) else "other"
    return found


def required_arguments(module: nn.Module) -> list[str]:
    """Names of those arguments of forward that have to be given."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(module.forward).parameters.values()
    return [p.name for p in parameters if p.kind in kinds and p.default is inspect.Parameter.empty]


def has_parameter(module: nn.Module, name: str) -> bool:
    """Whether forward has a parameter of this name."""
    return name in inspect.signature(module.forward).parameters


def find_source_and_target(module: nn.Module, device: torch.device) -> Pair | None:
    """How to ask an encoder-decoder whose forward wants a source and a target, in whatever order; None for others.

    Where names leave it open, as in forward(inputs, targets), the model is asked: logits of an encoder-decoder are as
    many as the tokens of its target, and another source gives others.
    """
    wanted = required_arguments(module)
    match [kind(name) for name in wanted]:
        case ["source", "target"]:
            return _source_first
        case ["target", "source"]:
            return _source_last
        case ["source", "text"] | ["text", "target"] if reads_both(module, device):
            return _source_first
    return None


@torch.no_grad()
def reads_both(module: nn.Module, device: torch.device) -> bool:
    """Whether model(source (2, 5), target (2, 4)) depends on the source and gives a row for a token of the target."""
    ids = torch.tensor([[1, 0, 1, 1], [0, 1, 1, 0]], device=device)
    source = torch.tensor([[0, 1, 1, 0, 1], [1, 1, 0, 1, 0]], device=device)
    training = module.training
    try:
        got, other = (tensor_in(module.eval()(given.clone(), ids.clone())) for given in (source, 1 - source))
    except Exception:  # whatever a model raises that means something else by its arguments
        return False
    finally:
        module.train(training)
    return got is not None and other is not None and got.numel() % ids.numel() == 0 and not torch.equal(got, other)


def tensor_in(out: Any) -> Float | None:
    """The logits in what a model returns, as far as they can be told without knowing it."""
    found = out[0] if isinstance(out, tuple | list) and out else out
    found = getattr(found, "logits", found)
    return found if isinstance(found, torch.Tensor) and found.is_floating_point() and found.dim() > 1 else None


def unused_arguments(module: nn.Module, given: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Optional arguments of forward that no law gave, each with the argument of Torch that would tell of it."""
    optional = [
        p.name
        for p in inspect.signature(module.forward).parameters.values()
        if p.default is not inspect.Parameter.empty
    ]
    found = [(name, next((by for by, names in TELLS if names.search(name)), "")) for name in optional]
    return tuple((name, by) for name, by in found if by and by not in given)


def wants_labels(wanted: list[str]) -> bool:
    """Whether these arguments are a text and what is to be predicted of it."""
    return len(wanted) == 2 and kind(wanted[0]) == "text" and LABELS.match(wanted[1]) is not None


def must_take_the_source(model: str, functions: Mapping[str, Callable[..., Any] | None]) -> None:
    """Raise BadValue where a function of an encoder-decoder would read another source than plain calls do."""
    for name, function in functions.items():
        arguments = FUNCTIONS[name][1]
        if function is not None and not _accepts(function, len(arguments.split(", "))):
            raise BadValue(
                f"{model} is an encoder-decoder, so {name} is given the source, too: "
                f"Torch(model, {name}=lambda {arguments}: ...)"
            )


def _accepts(function: Callable[..., Any], n: int) -> bool:
    """Whether a function can be called with n arguments; True where nobody can tell."""
    try:
        inspect.signature(function).bind(*range(n))
    except TypeError:
        return False
    except ValueError:  # written in C
        return True
    return True


def _source_first(model: Any, source: Int, ids: Int) -> Any:
    return model(source, ids)


def _source_last(model: Any, source: Int, ids: Int) -> Any:
    return model(ids, source)


__all__ = [
    "FUNCTIONS",
    "find_source_and_target",
    "has_parameter",
    "kind",
    "must_take_the_source",
    "reads_both",
    "required_arguments",
    "tensor_in",
    "unused_arguments",
    "wants_labels",
]
