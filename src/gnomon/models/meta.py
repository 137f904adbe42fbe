"""on_meta: a model without memory, whatever sizes its config asks for."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from gnomon.errors import BadValue
from gnomon.models.architectures import build
from gnomon.models.config import ModelConfig
from gnomon.models.model import Model

_DRAWS = (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_, Tensor.normal_, Tensor.uniform_)


def build_on_meta(config: ModelConfig) -> Model:
    """A model of this config without memory, in eval mode, and torch's random state left where it was."""
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"), _Undrawn():
            return build(config).eval()
    except (TypeError, RuntimeError, ArithmeticError) as error:  # what torch says of sizes that it cannot count
        raise BadValue(f"no model has these sizes: {str(error).splitlines()[0]}") from error


class _Undrawn(TorchFunctionMode):
    """Leaves out the draws of initial weights: where there is no memory there is nothing to draw, and for drawing there
    torch imports its compiler first, which takes seconds."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """What torch asks before each of its functions."""
        given = kwargs or {}
        return (args[0] if args else given["tensor"]) if func in _DRAWS else func(*args, **given)


__all__ = ["build_on_meta"]
