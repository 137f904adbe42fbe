"""Text from tokens that arrive one by one, without ever showing half a character."""

import codecs
from collections.abc import Iterable

from gnomon.data.tokenizer import Tokenizer


class TextStream:
    """Decode tokens as they come: ``push`` returns the text that has become complete, ``flush`` what is left.

    The pieces add up to ``tokenizer.decode`` of all the ids. A character whose bytes come in several tokens appears
    with its last byte; one that never ends appears as a single U+FFFD at ``flush``. Whether a piece is complete is
    read from the bytes, never from the look of the text, so a U+FFFD that belongs to the text holds nothing up.

    >>> stream = TextStream(Tokenizer.bytes())
    >>> [stream.push(i) for i in "ñ!".encode()] + [stream.flush()]
    ['', 'ñ', '!', '']
    """

    def __init__(self, tokenizer: Tokenizer, after: Iterable[int] = ()) -> None:
        """Start a text, or continue the one whose ids are ``after`` (a prompt), which is not returned again."""
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._started = False
        for token in after:
            self.push(token)

    def push(self, token: int) -> str:
        """The text completed by one more token id; often a whole word, empty within a character or for a control id."""
        [token] = self._tokenizer.check([token])
        if token in self._tokenizer.control_ids:
            return ""
        pieces = self._tokenizer.pieces
        piece = pieces.rest[token] if self._started else pieces.first[token]
        self._started = True
        return self._decoder.decode(piece)

    def flush(self) -> str:
        """End the text: U+FFFD if it stops within a character, else nothing."""
        return self._decoder.decode(b"", final=True)
