"""Text from a model: prompts in, tokens chosen by a strategy, one forward a step for all of them."""

from gnomon.generate.feed import evaluating
from gnomon.generate.loop import generate
from gnomon.generate.model import LanguageModel
from gnomon.generate.row import Generation, Token
from gnomon.generate.strategies import Greedy, Sample, Strategy
from gnomon.generate.stream import stream

__all__ = ["Generation", "Greedy", "LanguageModel", "Sample", "Strategy", "Token", "evaluating", "generate", "stream"]
