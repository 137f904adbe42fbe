"""What `gnomon inspect` prints of one text on its way through a model: the steps, their shapes, and numbers."""

from typing import TYPE_CHECKING

from gnomon.glossary import Words, translate

if TYPE_CHECKING:
    from gnomon.models import Model
    from gnomon.plots import Inspection
    from gnomon.plots.inspection import Candidate, Reading

SHOWN, NUMBERS = 24, 5  # tokens in the table of vectors; numbers of each vector


def inspection_text(source: str, model: "Model", seen: "Inspection", w: Words) -> str:
    """The whole of it, as lines. Of an encoder-decoder the encoder comes first."""
    c = model.config
    lines = [w("model", source=translate(source, w.lang), layers=c.n_layers, width=c.d_model, heads=c.n_heads), ""]
    if seen.source is not None:
        lines += [w("source_side"), "", *_reading(model, seen.source, w), "", w("target_side"), ""]
    lines += _reading(model, seen, w)
    if seen.source is not None:
        shape = f"{len(seen.cross)} x (1, {len(seen.cross[0])}, {len(seen.ids)}, {len(seen.source.ids)})"
        names = seen.source.tokens
        looks = [_looks(names, seen.looks_at_source(n), n, w) for n in range(len(seen.cross))]
        lines += ["", _step(w, w("step_cross"), shape, w("last_looks_source")), "", *looks]
    return "\n".join([*lines, "", *_answer(seen, w)])


def _step(w: Words, name: str, shape: str, what: str) -> str:
    steps = ("token_vectors", "step_position", "step_input", "step_attention", "step_cross", "step_output")
    width = max(15, *(len(w(key)) for key in steps))
    return f"{name:<{width}} {shape:<22} {what}"


def _reading(model: "Model", seen: "Reading", w: Words) -> list[str]:
    """From ids to attention, in one stack."""
    from gnomon.models import EncoderDecoder
    from gnomon.plots import Inspection
    from gnomon.plots.inspection import table_of

    T, D = seen.vectors.shape
    tokens = table_of(model, source=isinstance(model, EncoderDecoder) and not isinstance(seen, Inspection))
    table = w(
        "table_rows",
        shape=f"({tokens.weight.shape[0]}, {tokens.weight.shape[1]})",
        scale="" if tokens.scale == 1 else w("times", scale=float(tokens.scale)),
    )
    where = "; ".join(f"{e.name}, {w(f'acts_{e.acts}')}" for e in seen.encodings)
    shape = f"(1, {T}, {D})" if seen.position is not None else "-"
    attention = f"{len(seen.attention)} x (1, {len(seen.attention[0]) if seen.attention else 0}, {T}, {T})"
    return [
        _step(w, w("ids"), f"(1, {T})", " ".join(map(str, seen.ids[:SHOWN])) + (" ..." if T > SHOWN else "")),
        _step(w, w("token_vectors"), f"(1, {T}, {D})", table),
        _step(w, w("step_position"), shape, where),
        _step(w, w("step_input"), f"(1, {T}, {D})", w("first_reads")),
        "",
        *_vectors(seen, w),
        "",
        _step(w, w("step_attention"), attention, w("last_looks")),
        "",
        *(_looks(seen.tokens, seen.looks(layer), layer, w) for layer in range(len(seen.attention))),
    ]


def _vectors(seen: "Reading", w: Words) -> list[str]:
    """A row per token: its length, that of its position, and the first numbers of what enters the first layer."""
    token, position = w("token"), f"|{w('step_position')}|"
    width = max(*(len(text) for text in seen.tokens[:SHOWN]), len(token))
    heads = f"{'id':>6} {f'|{token}|':>8} {position:>10}   {w('first_numbers')}"
    rows = [f"    {'':>3} {token:<{width}} {heads}"]
    for t, (i, text) in enumerate(zip(seen.ids[:SHOWN], seen.tokens[:SHOWN], strict=True)):
        added = "-" if seen.position is None else w.number(float(seen.position[t % len(seen.position)].norm()), ".3f")
        numbers = _numbers(seen.hidden[0][t, :NUMBERS].tolist(), w)
        length = w.number(float(seen.vectors[t].norm()), ".3f")
        rows.append(f"    {t:>3} {text:<{width}} {i:>6} {length:>8} {added:>10}   {numbers}")
    return rows + _rest(len(seen.ids), w)


def _answer(seen: "Inspection", w: Words) -> list[str]:
    """What the head reads, and what it says."""
    T, D = seen.output.shape
    output = _step(w, w("step_output"), f"(1, {T}, {D})", w("head_reads"))
    if seen.vector is not None:
        length, numbers = float(seen.vector.norm()), _numbers(seen.vector[: 2 * NUMBERS].tolist(), w)
        vector = _step(w, w("step_vector"), f"(1, {len(seen.vector)})", w("vector_numbers", length=length))
        return [output, vector, "", f"    {numbers} ..."]
    assert seen.logits is not None
    size = seen.logits.shape[-1]
    shape = f"(1, {size})" if seen.answer == "classes" else f"(1, {T}, {size})"
    key = {"next": "after_last", "each": "for_each", "classes": "of_text"}[seen.answer]
    lines = [output, _step(w, "logits", shape, w(key)), ""]
    if seen.answer != "each":
        return lines + [_guess(guess, w) for guess in seen.guesses]
    width = max(len(text) for text in seen.tokens[:SHOWN])
    pairs = zip(seen.tokens[:SHOWN], seen.guesses, strict=False)
    return [*lines, *(f"    {text:<{width}} {_guess(guess, w)}" for text, guess in pairs), *_rest(T, w)]


def _rest(tokens: int, w: Words) -> list[str]:
    hidden = tokens - SHOWN
    return [f"    {w('more', count=hidden)}"] if hidden > 0 else []


def _numbers(values: list[float], w: Words) -> str:
    return " ".join(w.number(x, "+.3f") for x in values)


def _looks(names: list[str], found: list[tuple[int, float]], layer: int, w: Words) -> str:
    looks = "   ".join(f"{key} {names[key]} {w.number(weight, '.0%')}" for key, weight in found)
    return f"    {w('layer_number', number=layer + 1):<9} {looks}"


def _guess(guess: "Candidate", w: Words) -> str:
    probability, logit = w.number(guess.probability, ".3%"), w.number(guess.logit, "+.3f")
    return f"    {probability:>9}  {logit:>8}  {guess.id:>6}  {guess.token}"


__all__ = ["inspection_text"]
