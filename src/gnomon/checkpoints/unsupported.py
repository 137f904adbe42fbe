"""Nearest: the error for a model that no kind of file holds. It names the settings in the way, and the way out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from gnomon.errors import BadValue
from gnomon.models import ModelConfig
from gnomon.models.presets import preset

#: how much further a family is that loses this setting: whoever chose it wants to keep it
WEIGHT = {"position": 3}
SMALL = ("mini-gpt", "mini-llama")  # presets to fall back on


@dataclass(frozen=True)
class Lost:
    """What the files of one family would lose of a model.

    settings   by name: the model's value, and what the files would say
    reasons    what is in the way besides, as sentences
    """

    family: str
    settings: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is lost."""
        return bool(self.settings or self.reasons)

    def __str__(self) -> str:
        return "; ".join(
            [
                *self.reasons,
                *(
                    f"{k} = {setting_text(mine)} (there {setting_text(theirs)})"
                    for k, (mine, theirs) in self.settings.items()
                ),
            ]
        )

    @property
    def distance(self) -> int:
        """How far the family is from holding the model."""
        return sum(WEIGHT.get(name, 1) for name in self.settings) + 2 * len(self.reasons)


def check_recipe(config: ModelConfig) -> None:
    """Raise BadValue for a recipe that moves tokens when a text is read: other libraries have none. One that is for
    training alone is left out, as dropout is."""
    if config.recipe is not None and config.recipe.in_reading:
        raise BadValue(
            f"{config.recipe} says where tokens sit when a text is read, and no file of another library can: keep it "
            "in Gnomon's own, gn.save_model, or build the model without the recipe and copy the weights"
        )


def no_family(kind: str, config: ModelConfig, losses: Sequence[Lost], fits: Callable[[ModelConfig], bool]) -> BadValue:
    """The error for a model that none of these families holds; fits: whether some family holds a config."""
    nearest = min(losses, key=lambda lost: lost.distance)
    ways = [way for way in (_nearest_supported(config, nearest, fits), _from_preset(config, fits)) if way]
    ways.append("Any model can be kept in a run folder (gnomon.save_model)")
    return BadValue(
        f"no family of {kind} holds this model; nearest is {nearest.family}, which cannot say: {nearest}. "
        f"{'. '.join(ways)}"
    )


def _nearest_supported(config: ModelConfig, lost: Lost, fits: Callable[[ModelConfig], bool]) -> str | None:
    """What the model would have to be built with, where that is all."""
    changes = {name: theirs for name, (_, theirs) in lost.settings.items()}
    if lost.reasons or "position" in changes or not _can(fits, partial(replace, config, **changes)):
        return None
    listing = " and ".join(f"{name}={theirs!r}" for name, theirs in changes.items())
    sets = " ".join(f"--set model.{name}={str(theirs).lower()}" for name, theirs in changes.items())
    return f"A model that is trained with {listing} can be written: gnomon train {sets}"


def _from_preset(config: ModelConfig, fits: Callable[[ModelConfig], bool]) -> str | None:
    """The presets that can be written with the same sense of position."""
    if config.architecture != "decoder-only":
        return None
    able = [name for name in SMALL if _can(fits, partial(preset, name, position=config.position))]
    return f"With the same position, a model of --preset {' or '.join(able)} can be written" if able else None


def _can(fits: Callable[[ModelConfig], bool], made: Callable[[], ModelConfig]) -> bool:
    try:
        return fits(made())
    except (BadValue, TypeError):  # a change that no model can have
        return False


def setting_text(value: object) -> str:
    """A setting; one value of a list in which all are alike."""
    if not isinstance(value, list | tuple):
        return str(value)
    alike = value and all(each == value[0] for each in value)
    return setting_text(value[0]) if alike else f"[{', '.join(map(setting_text, value))}]"


__all__ = ["Lost", "check_recipe", "no_family", "setting_text"]
