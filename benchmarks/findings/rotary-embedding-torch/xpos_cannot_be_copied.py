"""A module with xPos, and any model that holds one, can be neither deep-copied nor saved as a whole."""

import io
from copy import deepcopy

import torch
from rotary_embedding_torch import RotaryEmbedding

deepcopy(RotaryEmbedding(dim=32))
module = RotaryEmbedding(dim=32, use_xpos=True)
for call in (deepcopy, lambda module: torch.save(module, io.BytesIO())):
    try:
        call(module)
    except TypeError as raised:
        print(f"raised: {raised}")
    else:
        raise AssertionError("it was copied")
