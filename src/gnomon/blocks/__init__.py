"""Blocks: norms, feed-forward networks and how a block is wired."""

from gnomon.blocks.block import Block, OneNormBlock, ParallelBlock
from gnomon.blocks.decoder import DecoderBlock
from gnomon.blocks.experts import Experts, MixtureOfExperts
from gnomon.blocks.ffn import Activation, FeedForward, default_width
from gnomon.blocks.residual import Around, BranchNorm, NoNorm, Placement, PostNorm, PreNorm, Sandwich, placement

__all__ = [
    "Activation",
    "Around",
    "Block",
    "BranchNorm",
    "DecoderBlock",
    "Experts",
    "FeedForward",
    "MixtureOfExperts",
    "NoNorm",
    "OneNormBlock",
    "ParallelBlock",
    "Placement",
    "PostNorm",
    "PreNorm",
    "Sandwich",
    "default_width",
    "placement",
]
