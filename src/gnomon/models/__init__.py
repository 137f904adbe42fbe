"""Models: the three architectures and their configs."""

from gnomon.models.config import PRESETS, ModelConfig, preset
from gnomon.models.decoder_only import DecoderOnly
from gnomon.models.encoder_decoder import EncoderDecoder
from gnomon.models.encoder_only import EncoderOnly

__all__ = ["PRESETS", "DecoderOnly", "EncoderDecoder", "EncoderOnly", "ModelConfig", "preset"]
