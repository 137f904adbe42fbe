"""Names of weights, whatever the model is wrapped in."""

import re

# What torch.compile, DataParallel and DistributedDataParallel put before the names of a model they wrap.
_WRAPPER = re.compile(r"^(?:module\.|_orig_mod\.)+|(?<=\.)_orig_mod\.")


def plain_name(name: str) -> str:
    """A weight's name without the prefixes of wrappers.

    >>> plain_name("module._orig_mod.stack.blocks.0._orig_mod.ffn.up.weight")
    'stack.blocks.0.ffn.up.weight'
    """
    return _WRAPPER.sub("", name)


__all__ = ["plain_name"]
