"""Embeddings: token table, heads tied to it or not, and the whole input layer."""

from gnomon.embed.heads import Tied, Untied
from gnomon.embed.input import InputEmbedding, InputLayer
from gnomon.embed.table import TokenEmbedding, check_ids, read_vectors

__all__ = ["InputEmbedding", "InputLayer", "Tied", "TokenEmbedding", "Untied", "check_ids", "read_vectors"]
