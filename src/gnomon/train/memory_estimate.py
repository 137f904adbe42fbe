"""The least memory a training run needs, checked before anything is built: an error instead of a killed process."""

import torch

from gnomon.available_memory import room_for
from gnomon.glossary import grouped
from gnomon.models import ModelConfig
from gnomon.train.config import TrainConfig

PER_PARAMETER = 16  # bytes: the weight, its gradient and AdamW's two moments, in float32
FROZEN = 4  # of a weight that is not trained


def check_memory(model: ModelConfig, config: TrainConfig, device: torch.device) -> None:
    """Raise BadValue for a model or batches that do not fit into this machine's memory, counted from below.

    Where another device computes, the machine itself holds token ids and first weights only.
    """
    here = device.type == "cpu"
    layers = model.n_layers + (model.depth if model.architecture == "encoder-decoder" else 0)
    rows = -(-config.batch_size // config.accumulate)
    room_for(
        config.batch_size * config.length * 8 + here * rows * config.length * model.d_model * max(layers, 1) * 4,
        f"a batch of {grouped(config.batch_size)} rows of {grouped(config.length)} tokens",
        "choose a smaller length or batch_size, or accumulate more pieces",
    )
    narrow = model.d_model if model.d_embed is None else model.d_embed
    d_ff = 2 * model.d_model if model.d_ff is None else model.d_ff
    parameters = model.vocab_size * narrow + layers * 2 * model.d_model * d_ff
    if model.at_input.name == "learned":
        parameters += (model.max_positions or 0) * model.d_model
    room_for(
        (PER_PARAMETER if here and config.lora_rank is None else FROZEN) * parameters,
        f"training a model of at least {grouped(parameters)} parameters",
        "choose a smaller vocab_size, d_model, d_ff, n_layers or max_positions",
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory was asked for and there was none, on a device or on this machine."""
    told = str(error)
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "DefaultCPUAllocator" in told


__all__ = ["check_memory", "is_out_of_memory"]
