"""Text from a model: prompts in, tokens chosen by a strategy, one forward a step for all of them."""

from gnomon.generate.beam import Beam, DiverseBeam
from gnomon.generate.chat import Chat
from gnomon.generate.constraints import Constraints
from gnomon.generate.contrastive import Contrastive
from gnomon.generate.decoding_batch import DecodingBatch, evaluation_mode
from gnomon.generate.logits import History
from gnomon.generate.lookup import Lookup
from gnomon.generate.loop import Strategy, generate
from gnomon.generate.model import LanguageModel, ReadsSource
from gnomon.generate.row import Generation, Row, Token
from gnomon.generate.rules import Rules
from gnomon.generate.search import Search
from gnomon.generate.speculative import Speculative
from gnomon.generate.strategies import Chooser, Distribution, Greedy, Sample
from gnomon.generate.stream import stream
from gnomon.generate.tree import Node, Tree, draw

__all__ = [
    "Beam",
    "Chat",
    "Chooser",
    "Constraints",
    "Contrastive",
    "DecodingBatch",
    "Distribution",
    "DiverseBeam",
    "Generation",
    "Greedy",
    "History",
    "LanguageModel",
    "Lookup",
    "Node",
    "ReadsSource",
    "Row",
    "Rules",
    "Sample",
    "Search",
    "Speculative",
    "Strategy",
    "Token",
    "Tree",
    "draw",
    "evaluation_mode",
    "generate",
    "stream",
]
