"""What a user types to say which model: a checkpoint, or a callable that returns a model.

runs/mine  ./SmolLM2  model.gguf  smollm2-135m-instruct  OWNER/MODEL     a checkpoint, see gnomon.load
mymodels:small  tests.models:tiny  student.py:GPT                        imported, and called without arguments
"""

import importlib
import importlib.util
import inspect
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from gnomon.audit.adapters import target
from gnomon.audit.answers import error_text
from gnomon.audit.target import Target
from gnomon.checkpoints import find, load, save_hf
from gnomon.checkpoints.native import CONFIG, read_json
from gnomon.errors import BadInput, BadValue, GnomonError, unknown
from gnomon.models import Model

THROUGH = ("gnomon", "transformers")
_CALLABLE = re.compile(r"(?P<where>.+\.py|[A-Za-z_][\w.]*):(?P<what>[A-Za-z_][\w.]*)")


def resolve(text: str, through: str | None = None, seed: int = 0, device: torch.device | str = "cpu") -> Target:
    """The Target that `text` names, on this device. Checkpoints are computed in float32, whatever they are stored in.

    text     a run folder, Hugging Face folder, .gguf file, hub name or name of a pulled model; module:callable or
             path/file.py:callable, which is called without arguments for a model, a Target or a function from ids to
             logits
    through  the library that computes a checkpoint: gnomon (None) or transformers

    Raises BadValue for a callable that there is not or that gives no model, BadInput for a checkpoint that cannot be
    read, and where the transformers library is asked for and missing.
    """
    if through not in (None, *THROUGH):
        raise unknown("library", str(through), THROUGH)
    if text.removesuffix(":").endswith(".py") and not Path(text).is_dir():
        raise _names_no_model(text.removesuffix(":"))
    match = None if Path(text).exists() else _CALLABLE.fullmatch(text)
    if match is None:
        named = _through_transformers(text, device) if through == "transformers" else _through_gnomon(text, device)
        found = target(named, seed)
        found.name = f"{text} ({type(named).__name__})"
        return found
    if through is not None:
        raise BadValue(f"{text} is asked as it is: --with is for checkpoints, whose library can be chosen")
    made = _call_factory(text, match["where"], match["what"], seed)
    found = target(made.to(device) if isinstance(made, nn.Module) else made, seed)
    found.name = found.name if isinstance(made, Target) else text
    return found


# ------------------------------------------------------------------ a checkpoint


def _through_gnomon(text: str, device: torch.device | str) -> Model:
    """A checkpoint as a model of Gnomon. Where it cannot read a Hugging Face folder, transformers may."""
    path = find(text)
    try:
        return load(path, device, torch.float32)
    except BadInput as error:
        if not _is_transformers_model(path):
            raise
        raise BadInput(f"{error}. To audit it through the transformers library: --with transformers") from error


def _is_transformers_model(path: Path) -> bool:
    """Whether it is a Hugging Face folder."""
    return path.is_dir() and (path / CONFIG).is_file() and "model_type" in read_json(path / CONFIG)


# ------------------------------------------------------------------ a callable


def _names_no_model(text: str) -> BadValue:
    """The error for a file alone: it names the models there and the functions, those that need no arguments if any."""
    with _search_path(text):
        module = _import(text, text)
    own = _own_names(module)
    names = [
        name for name in own if isinstance(found := vars(module)[name], Target) or not _required_arguments(found)
    ] or own
    named = ", ".join(f"{text}:{name}" for name in names)
    return BadValue(f"{text} is a file: name the model in it, or a function that returns one: {named or f'{text}:...'}")


def _own_names(module: ModuleType) -> list[str]:
    """Names of the models, their classes and the functions that a module itself defines, models first."""
    models, functions = [], []
    for name, value in ((name, value) for name, value in vars(module).items() if not name.startswith("_")):
        home = getattr(value, "__module__", "")
        own = isinstance(home, str) and f"{home}.".startswith(f"{module.__name__}.")
        if isinstance(value, nn.Module | Target) or (own and isinstance(value, type) and issubclass(value, nn.Module)):
            models.append(name)
        elif own and inspect.isfunction(value):
            functions.append(name)
    return models + functions


def _call_factory(text: str, where: str, what: str, seed: int) -> Any:
    """What the callable returned; what is a model already is not called."""
    with _search_path(where):
        found = _attribute(_import(text, where), where, what)
        if isinstance(found, nn.Module | Target):
            return found
        if not callable(found):
            raise BadValue(f"{text} is {type(found).__name__} {found!r}: name a model, or a function that returns one")
        if needed := _required_arguments(found):
            raise BadValue(
                f"{text} cannot be called without {' and '.join(needed)}: write a function without arguments that "
                "returns the model, and name that"
            )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            try:
                made = found()
            except GnomonError:
                raise
            except (Exception, SystemExit) as error:  # whatever anybody's constructor raises
                raise BadInput(f"{text} was called and raised {error_text(error)}") from error
    if made is None:
        raise BadValue(f"{text} returned nothing: it ends without `return model`")
    if not callable(made) and not isinstance(made, Target):
        raise BadValue(f"{text} returned {type(made).__name__}: it should return a model, a Target or a function")
    return made


@contextmanager
def _search_path(where: str) -> Iterator[None]:
    """Modules are found in the present folder, or beside the file that is named."""
    path = list(sys.path)
    sys.path.insert(0, str(Path(where).resolve().parent if where.endswith(".py") else Path.cwd()))
    try:
        yield
    finally:
        sys.path[:] = path


def _import(text: str, where: str) -> ModuleType:
    try:
        return _import_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name is not None and where.startswith(error.name):
            raise BadValue(f"{text}: there is no module {error.name} in {Path.cwd()} or among the installed") from error
        raise BadInput(f"{text}: {where} needs {error.name}, which is not installed") from error
    except GnomonError:
        raise
    except (Exception, SystemExit) as error:  # whatever runs when it is imported
        raise BadInput(f"{text}: importing {where} raised {error_text(error)}") from error


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise BadValue(f"there is no file {path}")
    name = f"audited_{path.stem}"  # a name of its own: a file random.py must not become everybody's `random`
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def _attribute(module: ModuleType, where: str, what: str) -> Any:
    found: Any = module
    for name in what.split("."):
        if name not in dir(found):
            own = (
                _own_names(module) if found is module else [known for known in vars(found) if not known.startswith("_")]
            )
            raise unknown(f"name in {where}", name, own)
        found = getattr(found, name)
    return found


def _required_arguments(found: Any) -> list[str]:
    """Names of the arguments that a callable cannot do without."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):  # written in C
        return []
    return [p.name for p in parameters if p.default is inspect.Parameter.empty and p.kind not in kinds]


# ------------------------------------------------------------------ through the transformers library


def _through_transformers(text: str, device: torch.device | str) -> Any:
    """A checkpoint as a model of transformers. One in another format is read by Gnomon first, and written as a folder
    that transformers reads, if there is a family that can say all of it."""
    try:
        transformers = importlib.import_module("transformers")
    except ImportError as error:
        raise BadInput(
            f"--with transformers needs the transformers library: pip install transformers ({error})"
        ) from error
    transformers.logging.disable_progress_bar()
    path = find(text)
    if _is_transformers_model(path):
        return _pretrained(transformers, path, device)
    model = load(path, dtype=torch.float32)
    with tempfile.TemporaryDirectory() as folder:
        try:
            save_hf(model, folder)
        except BadValue as error:
            raise BadInput(f"{text} is no model that transformers has a class for: {error}") from error
        return _pretrained(transformers, Path(folder), device)


def _pretrained(transformers: Any, folder: Path, device: torch.device | str) -> Any:
    """The model of a folder, as the class that its config names."""
    names = read_json(folder / CONFIG).get("architectures") or ["AutoModel"]
    cls = getattr(transformers, str(names[0]), None)
    if cls is None:
        raise BadInput(
            f"{folder}: transformers {transformers.__version__} has no class {names[0]}; if it comes with code of its "
            "own, load it yourself and give module:callable"
        )
    try:
        return cls.from_pretrained(folder, dtype=torch.float32).to(device)
    except Exception as error:  # of whatever part of it
        raise BadInput(f"transformers cannot load {folder}: {type(error).__name__}: {error}") from error


__all__ = ["THROUGH", "resolve"]
