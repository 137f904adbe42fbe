"""The architectures by name."""

from gnomon.models.config import ModelConfig
from gnomon.models.decoder_only import DecoderOnly
from gnomon.models.encoder_decoder import EncoderDecoder
from gnomon.models.encoder_only import EncoderOnly
from gnomon.models.model import Model

ARCHITECTURES: dict[str, type[Model]] = {cls.architecture: cls for cls in (DecoderOnly, EncoderOnly, EncoderDecoder)}


def build(config: ModelConfig) -> Model:
    """A new model of the architecture that the config names."""
    return ARCHITECTURES[config.architecture].from_config(config)


__all__ = ["ARCHITECTURES", "build"]
