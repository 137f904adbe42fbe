"""As built: what a file can hold of a model, a config and weights. A model that these do not give back is refused."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass, replace

import torch
from torch import Tensor, nn

from gnomon.data import Tokenizer
from gnomon.embed import Tied, Untied
from gnomon.errors import BadValue
from gnomon.models.config import ModelConfig
from gnomon.models.meta import build_on_meta
from gnomon.models.model import Model
from gnomon.models.weight_names import plain_name
from gnomon.stored import check_whole

PLAIN = (bool, int, float, str, type(None), torch.dtype)
#: settings that change no logits: of training, and of how new rows are drawn
UNSEEN = {"training", "p", "dropout", "std", "inplace", "gradient_checkpointing"}
MOST = 6  # differences that an error lists


@dataclass(frozen=True)
class Snapshot:
    """What a file holds: the config that builds the model, and its weights by name, each once."""

    config: ModelConfig
    weights: Mapping[str, Tensor]


def snapshot(model: Model, tokenizer: Tokenizer | None = None) -> Snapshot:
    """The config and the weights of a model, whose parts may have been replaced or compiled.

    tokenizer   what is written beside it, default its own
    The config is the model's, but for the tie: a head that was replaced is told by what it is. Raises BadValue, which
    names the part, where what the config builds would compute something else than the model does.
    """
    check_whole(model)
    head = model.over_vocabulary
    if isinstance(head, Tied) and not model.tied:
        raise BadValue(
            "the head is tied to a table that the model does not have any more, so no file would hold it: tie it to "
            "the model's own, model.head = gn.Tied(model.input)"
        )
    config = _config_with_head(model, head)
    weights = {plain_name(name): tensor for name, tensor in model.state_dict().items()}
    shared = [] if not (model.tied and isinstance(head, Untied)) else _names_of(model, head)
    for name in shared:
        del weights[f"{name}.weight"]
    built = build_on_meta(config)
    found = list(_differences(model, built, weights, shared))
    if found:
        more = f"; and {len(found) - MOST} more" if len(found) > MOST else ""
        raise BadValue(
            "a file holds a config and weights, and this model is no longer what its config builds: "
            f"{'; '.join(found[:MOST])}{more}. Put back a part like the one that was replaced, or build a new model "
            "with these settings and copy the weights; a vocabulary is changed by model.resize"
        )
    _check_each_once(weights)
    model.check_ids(config.vocab_size, tokenizer)
    if model.labels is not None and config.n_classes not in (None, len(model.labels)):
        raise BadValue(f"model.labels names {len(model.labels)} classes, but the head knows {config.n_classes}")
    return Snapshot(config, weights)


def _config_with_head(model: Model, head: Tied | Untied | None) -> ModelConfig:
    """The model's config, told by the head that it has now."""
    config = model.config
    if head is None:
        return config
    if model.tied != config.tied:
        config = replace(config, tied=model.tied, head_scale=head.scale, head_softcap=head.softcap)
    return replace(config, head_bias=head.bias is not None) if config.head == "tokens" else config


def _names_of(model: Model, part: nn.Module) -> list[str]:
    return [plain_name(f"{name}.").rstrip(".") for name, other in model.named_modules() if other is part]


def _differences(model: Model, built: Model, ours: Mapping[str, Tensor], besides: list[str]) -> Iterator[str]:
    """Parts of another class, settings of parts that compute something else, and weights that do not fit."""
    parts = {plain_name(f"{name}.").rstrip("."): part for name, part in model.named_modules(remove_duplicate=False)}
    seen = [*besides]  # what is told already, with all that is inside it

    def covered(name: str) -> bool:
        return any(name == other or name.startswith(f"{other}.") for other in seen)

    for name, like in built.named_modules(remove_duplicate=False):
        part = parts.get(name)
        if name == "" or covered(name) or (part is None and not list(like.parameters())):
            continue
        if isinstance(part, type(like)):
            yield from _settings_differ(name, part, like)
            yield from (f"{name} has a {method} of its own" for method in _overridden(type(part), type(like)))
        else:
            seen.append(name)
            yield f"{name} is {'missing' if part is None else type(part).__name__}, not {type(like).__name__}"
    theirs = built.state_dict()
    for name in sorted(ours.keys() | theirs.keys()):
        mine, want = (tuple(side[name].shape) if name in side else None for side in (ours, theirs))
        if mine != want and not covered(name):
            yield (
                f"{name} is {'missing' if mine is None else mine} instead of {want}"
                if want
                else f"{name} has no place in it"
            )


def _settings_differ(name: str, part: object, like: object) -> Iterator[str]:
    for key, value in vars(like).items():
        mine = getattr(part, key, None)
        if key in UNSEEN or key.startswith("_") or not _is_plain(value) or mine == value:
            continue
        if is_dataclass(value) and isinstance(mine, type(value)):
            yield from _settings_differ(f"{name}.{key}", mine, value)
        else:
            yield f"{name}.{key} is {mine!r} instead of {value!r}"


def _overridden(cls: type, base: type) -> list[str]:
    """Methods of a base that a subclass computes otherwise; not what any module may have, such as how it is moved."""
    above = cls.__mro__[: cls.__mro__.index(base)]
    names = {name for each in above for name in vars(each) if callable(getattr(base, name, None))}
    return sorted(name for name in names if name == "forward" or not hasattr(nn.Module, name))


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return isinstance(value, PLAIN) or is_dataclass(value)


def _check_each_once(weights: Mapping[str, Tensor]) -> None:
    first: dict[int, str] = {}
    for name in sorted(name for name, weight in weights.items() if weight.numel() and not weight.is_meta):
        other = first.setdefault(weights[name].data_ptr(), name)
        if other != name:
            raise BadValue(
                f"{other} and {name} are one tensor, which a file would make two: give one of them its own, as in "
                f"a.weight = torch.nn.Parameter(b.weight.clone())"
            )


__all__ = ["Snapshot", "snapshot"]
