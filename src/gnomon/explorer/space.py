"""The question `nearby`: which tokens a model keeps close to a word, or to a sum of words, and a map of them."""

import torch

from gnomon.errors import BadValue
from gnomon.explorer.questions import Answer, question
from gnomon.models import Model
from gnomon.models.similarity import (
    nearest,
    plane,
    printable_tokens,
    require_tokenizer,
    token_vectors,
    word_ids,
    word_vector,
)

MOST = 60


@question
def nearby(model: Model, word: str, plus: str = "", minus: str = "", top: int = 20) -> Answer:
    """The tokens nearest to word - minus + plus, with their cosines, and all on the plane of largest variance."""
    if not 1 <= top <= MOST:
        raise BadValue(f"the explorer shows 1 to {MOST} neighbours, got {top}")
    if not word.strip():
        raise BadValue("give a word")
    tokenizer, table = require_tokenizer(model), token_vectors(model)
    given = [(text, sign) for text, sign in ((word, 1.0), (minus, -1.0), (plus, 1.0)) if text.strip()]
    ids = {text: word_ids(model, text) for text, _ in given}
    vectors = {text: word_vector(table, own) for text, own in ids.items()}
    target = sum((sign * vectors[text] for text, sign in given), torch.zeros(table.shape[1]))
    own = {i for each in ids.values() for i in each}
    others = [i for i in printable_tokens(tokenizer) if i not in own and _has_letters(tokenizer.tokens([i])[0])]
    near = nearest(target, table[others], top)
    names = tokenizer.tokens([others[n] for n, _ in near])
    shown = [*vectors.values(), *([target] if len(given) > 1 else []), *(table[others[n]] for n, _ in near)]
    places, shares = plane(torch.stack(shown)) if len(shown) > 2 else (torch.zeros(len(shown), 2), torch.zeros(2))
    heads = [text for text, _ in given] + (["="] if len(given) > 1 else [])
    return {
        "neighbors": [{"token": t, "id": others[n], "cosine": c} for t, (n, c) in zip(names, near, strict=True)],
        "pieces": {text: tokenizer.tokens(each) for text, each in ids.items()},
        "heads": heads,
        "names": [*heads, *names],
        "places": places.float(),
        "shares": shares.float(),
        "length": float(target.norm()),
        "mean_length": float(table.norm(dim=-1).mean()),
    }


def _has_letters(name: str) -> bool:
    """Whether a token shows anything: not blanks, and not the marks that stand for control characters."""
    return any(not ("\u2400" <= c <= "\u2426" or c.isspace()) for c in name)


__all__ = ["nearby"]
