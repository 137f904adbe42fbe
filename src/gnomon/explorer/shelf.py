"""The models that a page may look into: those named when the server started, each loaded when it is first asked for."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from threading import RLock
from typing import Any

from gnomon.checkpoints import load
from gnomon.errors import BadValue, unknown
from gnomon.models import Model

INCLUDED = ("rope", "alibi", "t5", "sinusoidal", "learned", "none", "numbers-es-en", "gaps")  #: in the order shown


def included() -> list[Path]:
    """The small models that come with the package: a decoder for each of six encodings, a translator of numbers, and an
    encoder that fills gaps. `explorer/train_models.py` made them."""
    folder = Path(str(files("gnomon.explorer"))) / "models"
    return [place for name in INCLUDED if (place := folder / f"tiny-{name}").is_dir()]


class Shelf:
    """Models by name. One lock is for all of them: a machine that computes two things at once does both slower."""

    def __init__(self, models: Sequence[str | Path | Model] = (), device: str = "cpu") -> None:
        """models: what `gnomon.load` takes, or models in memory."""
        self.lock, self.device = RLock(), device
        self._known: dict[str, str | Path | Model] = {}
        for model in models:
            self._known[_free(_name(model), self._known)] = model

    @property
    def names(self) -> list[str]:
        """What the models are called, the first one first."""
        return list(self._known)

    def get(self, name: str) -> Model:
        """The model of a name, loaded if it is not yet. Raises BadValue for a name that was not given to the server."""
        if name not in self._known:
            raise unknown("model", name, self._known) if self._known else BadValue("this explorer has no model")
        with self.lock:
            found = self._known[name]
            if not isinstance(found, Model):
                small = found in included()  # float16 on the disk
                found = self._known[name] = load(found, self.device, "float32" if small else None)
            return found.eval()

    def cards(self) -> list[dict[str, Any]]:
        """What is known of each model without loading it."""
        return [{"name": name, "loaded": isinstance(model, Model)} for name, model in self._known.items()]


def _name(model: str | Path | Model) -> str:
    return model.config.architecture if isinstance(model, Model) else Path(model).name or str(model)


def _free(name: str, taken: dict[str, Any]) -> str:
    n, made = 2, name
    while made in taken:
        n, made = n + 1, f"{name} ({n})"
    return made


__all__ = ["Shelf", "included"]
