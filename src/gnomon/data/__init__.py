"""Text in, token ids out: tokenizers, corpora, tokenised stores, batches, and the n-gram they are compared with."""

from gnomon.data.batch import EvalWindows, LMBatches, bits_per_byte, document_lengths, long_documents, windows_for_eval
from gnomon.data.corpus import Corpus
from gnomon.data.document import Document
from gnomon.data.files import atomic, cache_folder
from gnomon.data.lock import lock_folder
from gnomon.data.mixture import Mixture
from gnomon.data.ngram import NGramBaseline
from gnomon.data.store import TokenStore
from gnomon.data.stream import TextStream
from gnomon.data.tokenizer import Tokenizer

__all__ = [
    "Corpus",
    "Document",
    "EvalWindows",
    "LMBatches",
    "Mixture",
    "NGramBaseline",
    "TextStream",
    "TokenStore",
    "Tokenizer",
    "atomic",
    "bits_per_byte",
    "cache_folder",
    "document_lengths",
    "lock_folder",
    "long_documents",
    "windows_for_eval",
]
