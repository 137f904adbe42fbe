"""Kind: the settings of a task, and how they become training texts, a model and a `gnomon.train.Task`."""

import pkgutil
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

from gnomon.data import Tokenizer
from gnomon.errors import BadInput, BadValue, unknown
from gnomon.models import Model, ModelConfig, build
from gnomon.settings import check_fields
from gnomon.train import State, Task, TrainConfig

_KINDS: dict[str, type["Kind"]] = {}


@dataclass(frozen=True)
class Kind(ABC):
    """Base of the kinds of tasks. A field of a subclass is a setting and has a default; lists are tuples."""

    name: ClassVar[str]  #: as in --task NAME, and of its table of settings
    about: ClassVar[str]  #: one sentence
    takes: ClassVar[str | None] = None  #: the field that the SOURCES of the command line are for
    preset: ClassVar[str | None] = None  #: of the model, or else its settings, in default_model
    default_model: ClassVar[Mapping[str, Any]] = {}
    default_tokenizer: ClassVar[str] = "bpe"
    default_train: ClassVar[TrainConfig] = TrainConfig()

    def __init_subclass__(cls, **settings: Any) -> None:
        """Make the kind known by its name."""
        super().__init_subclass__(**settings)
        _KINDS[cls.name] = cls

    @abstractmethod
    def texts(self) -> Iterable[str]:
        """What a vocabulary is learned from: training data only, in an order that is the same each time."""

    @abstractmethod
    def task(self, tokenizer: Tokenizer, config: TrainConfig, quiet: bool = True) -> Task:
        """The task over this vocabulary; `quiet` shows no progress where the data take long to read."""

    def task_on(self, sources: tuple[str, ...], tokenizer: Tokenizer, config: TrainConfig, quiet: bool) -> Task:
        """The task to measure a model on other data with, all of which counts as held out."""
        raise BadValue(f"the task {self.name} makes its own data: leave --data out")

    def vocabulary(self, tokenizer: Tokenizer) -> Tokenizer:
        """The tokenizer with what the task needs besides text, such as a mask."""
        return tokenizer

    def describe(self) -> str:
        """What is trained on, in a line."""
        return self.about

    def title(self) -> str:
        """The name of a run's folder where none is given."""
        return self.name

    def next_step(self, folder: Path) -> str:
        """What to do with the trained model."""
        return f"Measure it: gnomon eval {shlex.quote(str(folder))}"

    def new_model(self, config: ModelConfig) -> Model:
        """A model that has not learned anything yet."""
        return build(config)

    def with_absolute_paths(self) -> Self:
        """The same settings with absolute paths, so that the data are found from any folder."""
        return self

    def to_state(self) -> dict[str, Any]:
        """What the state of a run keeps; `saved_kind` makes it a Kind again."""
        return {"task": self.name, self.name: asdict(self.with_absolute_paths())}


def kinds() -> dict[str, type[Kind]]:
    """Every kind by name: those of this package, and yours once their module is imported."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        import_module(f"{__package__}.{module.name}")
    return dict(_KINDS)


def find(name: str) -> type[Kind]:
    """The kind of that name; BadValue names the nearest one."""
    known = kinds()
    if name not in known:
        raise unknown("task", name, known)
    return known[name]


def saved_kind(state: State, folder: Path) -> Kind:
    """The kind of task that a run was started with, with its settings; BadInput where its state does not say."""
    name = state.origin.get("task")
    if not isinstance(name, str) or not isinstance(settings := state.origin.get(name), dict):
        raise BadInput(
            f"{folder} does not say what it was trained on, so it was not started by gnomon train: go on with "
            "gnomon.train.resume"
        )
    kind = find(name)
    try:
        check_fields(kind, settings)
        return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()})
    except BadValue as error:
        raise BadInput(f"the state of the run in {folder} is damaged: {kind.name}: {error}") from error


__all__ = ["Kind", "find", "kinds", "saved_kind"]
