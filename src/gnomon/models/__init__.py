"""Models: whole architectures and their configs."""

from gnomon.models.config import PRESETS, ModelConfig, preset
from gnomon.models.decoder_only import DecoderOnly

__all__ = ["PRESETS", "DecoderOnly", "ModelConfig", "preset"]
