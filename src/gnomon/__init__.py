"""Gnomon: a Transformer's sense of position as a part you choose by name, see, test and extend.

import gnomon as gn
model = gn.DecoderOnly(vocab_size=512, d_model=128, n_layers=2, n_heads=4, position="alibi")
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gnomon import audit as audit
    from gnomon import lab as lab
    from gnomon import plots as plots
    from gnomon import positions as positions
    from gnomon import train as train
    from gnomon.attention import MultiHeadAttention as MultiHeadAttention
    from gnomon.attention import attend as attend
    from gnomon.checkpoints import load as load
    from gnomon.checkpoints import save_hf as save_hf
    from gnomon.checkpoints import save_model as save_model
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
    from gnomon.models import neighbors as neighbors
    from gnomon.models import sentence_vectors as sentence_vectors
    from gnomon.positions import PositionEncoding as PositionEncoding
    from gnomon.trace import Trace as Trace

#: public name -> where it lives; nothing is imported before it is asked for
_HOMES = {
    "BadInput": "errors", "BadValue": "errors", "GnomonError": "errors",
    "Layout": "layout", "visible": "layout", "Trace": "trace",
    "positions": "", "plots": "", "lab": "", "audit": "",
    "PositionEncoding": "positions",
    "Corpus": "data", "Tokenizer": "data",
    "InputLayer": "embed", "Tied": "embed", "TokenEmbedding": "embed", "Untied": "embed",
    "MultiHeadAttention": "attention", "attend": "attention",
    "Beam": "generate", "Constraints": "generate", "Contrastive": "generate", "DiverseBeam": "generate",
    "Greedy": "generate", "Lookup": "generate", "Sample": "generate", "Speculative": "generate",
    "DecoderOnly": "models", "EncoderDecoder": "models", "EncoderOnly": "models", "ModelConfig": "models",
    "neighbors": "models", "sentence_vectors": "models",
    "load": "checkpoints", "save_hf": "checkpoints", "save_model": "checkpoints", "train": "",
}  # fmt: skip

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gnomon' has no attribute {name!r}; it has {', '.join(sorted(_HOMES))}")
    home = _HOMES[name]
    found = importlib.import_module(f"gnomon.{home or name}")
    return getattr(found, name) if home else found


def __dir__() -> list[str]:
    return sorted(__all__)
