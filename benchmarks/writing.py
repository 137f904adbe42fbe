"""Writing text with a real model, in each form of the weights, beside other libraries; and what a form loses.

python benchmarks/writing.py [MODEL]     default smollm2-135m-instruct (gnomon pull brings it)

Contestants write the same number of tokens greedily after the same prompt, taking turns in one process. transformers
and CTranslate2 read the same weights, saved by `save_hf`; a library that is not installed is left out and named. What
a form loses is asked of a text of this repository: loss per token, and of how many tokens the likeliest next one stays.
"""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from bench import machine, race
from torch.nn import functional as F

import gnomon as gn

ROOT = Path(__file__).parents[1]
FORMS = ("float32", "bfloat16", "float16", "int8", "int4")
PROMPT = "Position encodings tell a Transformer where each token is. "
NEW, ROUNDS = 64, 7
Write = Callable[[list[list[int]], int], object]


def ours(model: gn.DecoderOnly, strategy: object = None) -> Write:
    """generate() with the cache that is made once."""

    def write(prompts: list[list[int]], n: int) -> object:
        more = {} if strategy is None else {"strategy": strategy}
        slots = max(map(len, prompts)) + n
        kept = {} if strategy is not None else {"cache": model.cache("preallocated", capacity=slots)}
        return model.generate(prompts, max_new_tokens=n, min_new_tokens=n, eos_ids=None, **more, **kept)

    return write


def of_transformers(folder: Path, **more: object) -> Write:
    """Its generate(), float32, greedy unless `more` says otherwise."""
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def write(prompts: list[list[int]], n: int) -> object:
        ids = torch.tensor(prompts)
        given = {"attention_mask": torch.ones_like(ids), "do_sample": False, "pad_token_id": 0, **more}
        with torch.no_grad():
            return model.generate(ids, max_new_tokens=n, min_new_tokens=n, **given)

    return write


def of_ctranslate2(folder: Path, form: str) -> Write:
    """Its Generator, which reads tokens by name."""
    import ctranslate2
    import transformers
    from ctranslate2.converters import TransformersConverter

    TransformersConverter(str(folder)).convert(str(folder / form), quantization=form, force=True)
    generator = ctranslate2.Generator(str(folder / form), intra_threads=torch.get_num_threads(), compute_type=form)
    names = transformers.AutoTokenizer.from_pretrained(folder)

    def write(prompts: list[list[int]], n: int) -> object:
        tokens = [names.convert_ids_to_tokens(ids) for ids in prompts]
        return generator.generate_batch(
            tokens, max_length=n, min_length=n, sampling_topk=1, include_prompt_in_result=False
        )

    return write


def loss_and_best(model: gn.DecoderOnly, ids: torch.Tensor) -> tuple[float, torch.Tensor]:
    """Nats per token of a text, and the likeliest next token at each place."""
    with torch.no_grad():
        logits = model(ids[:, :-1])[0]
    return float(F.cross_entropy(logits, ids[0, 1:])), logits.argmax(-1)


def lost(models: dict[str, gn.DecoderOnly], ids: torch.Tensor) -> None:
    """Print what each form costs in loss, and how often the likeliest next token stays the same."""
    right, best = loss_and_best(models["float32"], ids)
    print(f"\nLoss of {ids.shape[1] - 1} tokens of README.md; how often the likeliest next token is that of float32")
    for form, model in models.items():
        loss, mine = loss_and_best(model, ids)
        size = sum(part.nbytes for part in (*model.parameters(), *model.buffers())) / 2**20
        same = float((mine == best).float().mean())
        print(f"  {form:10s} {size:7.0f} MiB   {loss:.4f} nats ({loss - right:+.4f})   {same:7.2%}")


def others(folder: Path) -> dict[str, Write]:
    """The other libraries that are installed here, on the weights in this folder."""
    made: dict[str, Write] = {}
    for label, make in (
        ("transformers float32", lambda: of_transformers(folder)),
        ("CTranslate2 float32", lambda: of_ctranslate2(folder, "float32")),
        ("CTranslate2 int8", lambda: of_ctranslate2(folder, "int8")),
    ):
        try:
            made[label] = make()
        except ImportError as error:
            print(f"left out: {label} ({error})", file=sys.stderr)
    return made


def reading(model: gn.DecoderOnly, folder: Path, T: int) -> None:
    """Race the forward of a whole prompt."""
    import transformers

    other = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.randint(0, 4096, (1, T))

    def ours_() -> object:
        return model.head(model.hidden(ids)[:, -1:])

    with torch.no_grad():
        race(
            f"Reading a prompt of {T}", {"transformers": lambda: other(ids, logits_to_keep=1), "gnomon": ours_}, ROUNDS
        )


def main() -> None:
    """Load, race, print."""
    name = sys.argv[1] if len(sys.argv) > 1 else "smollm2-135m-instruct"
    models = {form: gn.load(name, weights=form, kind=gn.DecoderOnly) for form in FORMS}
    tokenizer = models["float32"].tokenizer
    assert tokenizer is not None
    prompt = tokenizer.encode(PROMPT)
    print(f"{machine()}\n{name}; compiled products: {'yes' if gn.native.library() else 'no'}")
    lost(models, torch.tensor([tokenizer.encode((ROOT / "README.md").read_text(encoding="utf-8"))[:1024]]))
    mine = {f"gnomon {form}": ours(model) for form, model in models.items()}
    with tempfile.TemporaryDirectory() as room:
        folder = gn.save_hf(gn.load(name, dtype="float32"), Path(room) / "hf")
        writers = {**others(folder), **mine}
        race(f"One stream: {NEW} new tokens after {len(prompt)}", runs(writers, [prompt], NEW), ROUNDS, 1)
        exact = {label: write for label, write in writers.items() if label.endswith("float32")}
        race("A batch of 16: 32 new tokens each", runs(exact, [prompt] * 16, 32), ROUNDS, 1)
        if "transformers float32" in writers:
            beams = {
                "transformers": of_transformers(folder, num_beams=4),
                "gnomon": ours(models["float32"], gn.generate.Beam(4)),
            }
            race("Beams of 4: 32 new tokens", runs(beams, [prompt], 32), ROUNDS, 1)
            for T in (512, 2048):
                reading(models["float32"], folder, T)


def runs(writers: dict[str, Write], prompts: list[list[int]], n: int) -> dict[str, Callable[[], object]]:
    """Each writer on these prompts."""
    return {label: partial(write, prompts, n) for label, write in writers.items()}


if __name__ == "__main__":
    main()
