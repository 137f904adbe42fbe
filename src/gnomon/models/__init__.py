"""Models: the three architectures and their configs."""

from gnomon.models.architectures import ARCHITECTURES, build
from gnomon.models.config import ModelConfig
from gnomon.models.context_extension import extend
from gnomon.models.decoder_only import DecoderOnly
from gnomon.models.encoder_decoder import EncoderDecoder
from gnomon.models.encoder_only import EncoderOnly
from gnomon.models.model import Model
from gnomon.models.plan import Plan
from gnomon.models.position_change import PositionChange, retrofit
from gnomon.models.presets import PRESETS, preset, presets
from gnomon.models.similarity import neighbors, sentence_vectors
from gnomon.models.writer import Writer

__all__ = [
    "ARCHITECTURES",
    "PRESETS",
    "DecoderOnly",
    "EncoderDecoder",
    "EncoderOnly",
    "Model",
    "ModelConfig",
    "Plan",
    "PositionChange",
    "Writer",
    "build",
    "extend",
    "neighbors",
    "preset",
    "presets",
    "retrofit",
    "sentence_vectors",
]
