"""Gnomon: a Transformer's sense of position as a part you choose by name, see, test and extend.

import gnomon as gn
model = gn.DecoderOnly(vocab_size=512, d_model=128, n_layers=2, n_heads=4, position="alibi")

What the command line does has a name here too: gn.train.train, gn.evaluate, gn.load, model.generate, gn.extend,
gn.retrofit, gn.convert, gn.pull, gn.plan, gn.presets, gn.neighbors, gn.lab, gn.audit, gn.plots.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # as type checkers read it; typing itself would double the time of `gnomon --help`
if TYPE_CHECKING:
    from typing import Any

    from gnomon import attention as attention
    from gnomon import audit as audit
    from gnomon import blocks as blocks
    from gnomon import checkpoints as checkpoints
    from gnomon import data as data
    from gnomon import embed as embed
    from gnomon import generate as generate
    from gnomon import lab as lab
    from gnomon import models as models
    from gnomon import plots as plots
    from gnomon import positions as positions
    from gnomon import tasks as tasks
    from gnomon import train as train
    from gnomon.attention import MultiHeadAttention as MultiHeadAttention
    from gnomon.attention.attend import attend as attend
    from gnomon.checkpoints import convert as convert
    from gnomon.checkpoints import load as load
    from gnomon.checkpoints import save_hf as save_hf
    from gnomon.checkpoints import save_model as save_model
    from gnomon.checkpoints.pull import pull as pull
    from gnomon.data import Corpus as Corpus
    from gnomon.data import Tokenizer as Tokenizer
    from gnomon.embed import InputLayer as InputLayer
    from gnomon.embed import Tied as Tied
    from gnomon.embed import TokenEmbedding as TokenEmbedding
    from gnomon.embed import Untied as Untied
    from gnomon.errors import BadInput as BadInput
    from gnomon.errors import BadValue as BadValue
    from gnomon.errors import GnomonError as GnomonError
    from gnomon.generate import Beam as Beam
    from gnomon.generate import Constraints as Constraints
    from gnomon.generate import Contrastive as Contrastive
    from gnomon.generate import DiverseBeam as DiverseBeam
    from gnomon.generate import Greedy as Greedy
    from gnomon.generate import Lookup as Lookup
    from gnomon.generate import Sample as Sample
    from gnomon.generate import Speculative as Speculative
    from gnomon.layout import Layout as Layout
    from gnomon.layout import visible as visible
    from gnomon.models import DecoderOnly as DecoderOnly
    from gnomon.models import EncoderDecoder as EncoderDecoder
    from gnomon.models import EncoderOnly as EncoderOnly
    from gnomon.models import ModelConfig as ModelConfig
    from gnomon.models import extend as extend
    from gnomon.models import neighbors as neighbors
    from gnomon.models import retrofit as retrofit
    from gnomon.models import sentence_vectors as sentence_vectors
    from gnomon.models.plan import plan as plan
    from gnomon.models.presets import presets as presets
    from gnomon.positions import PositionEncoding as PositionEncoding
    from gnomon.positions.citation import cite as cite
    from gnomon.tasks import evaluate as evaluate
    from gnomon.trace import Trace as Trace

#: the packages that hold something for users; each is imported when it is asked for, as gn.models
_PACKAGES = (
    "attention",
    "audit",
    "blocks",
    "checkpoints",
    "data",
    "embed",
    "generate",
    "lab",
    "models",
    "plots",
    "positions",
    "tasks",
    "train",
)
#: where the other public names live; nothing is imported before it is asked for
_NAMES = {
    "errors": "BadInput BadValue GnomonError",
    "layout": "Layout visible",
    "trace": "Trace",
    "data": "Corpus Tokenizer",
    "positions": "PositionEncoding",
    "positions.citation": "cite",
    "embed": "InputLayer Tied TokenEmbedding Untied",
    "attention": "MultiHeadAttention attend",
    "generate": "Beam Constraints Contrastive DiverseBeam Greedy Lookup Sample Speculative",
    "models": "DecoderOnly EncoderDecoder EncoderOnly ModelConfig extend neighbors presets retrofit sentence_vectors",
    "models.plan": "plan",
    "checkpoints": "convert load save_hf save_model",
    "checkpoints.pull": "pull",
    "tasks": "evaluate",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = [*_PACKAGES, *_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    """A public name, or a module of this package: gn.layout, say."""
    import importlib.util

    if name in _HOMES:
        return getattr(_imported(f"gnomon.{_HOMES[name]}"), name)
    if name in _PACKAGES or (not name.startswith("_") and importlib.util.find_spec(f"gnomon.{name}")):
        return _imported(f"gnomon.{name}")
    raise AttributeError(f"module 'gnomon' has no attribute {name!r}; it has {', '.join(sorted(__all__))}")


def _imported(module: str) -> Any:
    """The module, imported without a collection of garbage: it would look at all of torch, and takes as long as all
    that is imported here."""
    import gc
    import importlib

    collecting = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(module)
    finally:
        if collecting:
            gc.enable()


def __dir__() -> list[str]:
    return sorted(__all__)
