"""The axis letters used in every shape comment, and the aliases used in annotations.

    B  batch            T  queries (tokens of this call)     S  keys (tokens that may be seen)
    D  d_model          H  query heads                       K  key/value heads, H % K == 0
    C  width of a head  F  feed-forward width                V  vocabulary

Shapes stand in trailing comments, axes in memory order: ``q: Float  # (B, H, T, C)``.
"""

from torch import Tensor

Float = Tensor  #: a tensor of a floating dtype
Int = Tensor  #: a tensor of int64
Bool = Tensor  #: a tensor of truth values

__all__ = ["Bool", "Float", "Int"]
