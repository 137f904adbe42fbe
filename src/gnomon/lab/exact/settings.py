"""The model and the training of tasks with exact answers; docs/lab.md says how they were chosen."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ExactSize:
    """The model but for its position."""

    d_model: int = 64
    n_layers: int = 2
    n_heads: int = 4
    causal: bool = True  # or it sees both ways, and fills the answer in in one forward
    init_std: float = 0.1


@dataclass(frozen=True)
class ExactRecipe:
    """How each model is trained."""

    steps: int = 1500
    batch_size: int = 32
    lr: float = 3e-3
    warmup: int = 100
    floor: float = 0.1
    weight_decay: float = 0.01
    clip: float | None = 1.0
    stop_at: float | None = None  # end as soon as so large a share of fresh questions of training's lengths is right


@dataclass(frozen=True)
class ExactSettings:
    """Both."""

    model: ExactSize = field(default_factory=ExactSize)
    train: ExactRecipe = field(default_factory=ExactRecipe)


__all__ = ["ExactRecipe", "ExactSettings", "ExactSize"]
