"""A module with xPos, and any model that holds one, can be neither deep-copied nor saved as a whole."""

from copy import deepcopy

from rotary_embedding_torch import RotaryEmbedding

deepcopy(RotaryEmbedding(dim=32))
try:
    deepcopy(RotaryEmbedding(dim=32, use_xpos=True))
except TypeError as raised:
    print(f"raised: {raised}")
else:
    raise AssertionError("it was copied")
