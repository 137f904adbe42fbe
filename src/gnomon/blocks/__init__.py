"""Blocks: norms, feed-forward networks and how a block is wired."""

from gnomon.blocks.block import Block
from gnomon.blocks.decoder import DecoderBlock
from gnomon.blocks.ffn import Activation, FeedForward, default_width
from gnomon.blocks.residual import Placement, PostNorm, PreNorm, placement

__all__ = [
    "Activation", "Block", "DecoderBlock", "FeedForward", "Placement", "PostNorm", "PreNorm", "default_width",
    "placement",
]  # fmt: skip
