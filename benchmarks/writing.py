"""Writing text with a real model, in each form of the weights, beside other libraries; and what a form loses.

python benchmarks/writing.py [MODEL]     default smollm2-135m-instruct (gnomon pull brings it); tiny: a random one

The real model writes one stream, a batch, beams, and with drafts; random models are GPT-2 small, and an encoder-decoder
beside Marian of the same sizes. Contestants write the same number of tokens greedily after the same prompt, taking
turns in one process. transformers and CTranslate2 read the same weights, saved by `save_hf`; a library that is not
installed is left out and named. What a form loses is asked of a text of this repository: loss per token, and of how
many tokens the likeliest next one stays.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from bench import SMOKE, machine, race, record
from machine import limits
from torch.nn import functional as F

import gnomon as gn
from gnomon.checkpoints.pull import find

ROOT = Path(__file__).parents[1]
FORMS = ("float32", "bfloat16", "float16", "int8", "int4")
PROMPT = "Position encodings tell a Transformer where each token is. "
NEW, ROUNDS, LENGTHS = (4, 2, (24,)) if SMOKE else (64, 7, (512, 2048))
BATCHED = NEW // 2
TINY = {
    "vocab_size": 300,
    "d_model": 64,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "d_ff": 96,
    "position": "rope",
    "norm": "rmsnorm",
    "gated": True,
    "activation": "silu",
    "bias": False,
}
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
        record({"work": "loss", "contestant": form, "MiB": size, "nats": loss, "more": loss - right, "same_best": same})


def others(folder: Path, name: str) -> dict[str, Write]:
    """The other libraries that are installed here, on the weights in this folder."""
    made: dict[str, Write] = {}
    if name == "tiny":  # its tokenizer has no file that they read
        return {"transformers float32": of_transformers(folder)}
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


def weights_of(model: torch.nn.Module) -> tuple[int, int]:
    """Bytes of all that it holds, and how many numbers there are."""
    held = [*model.parameters(), *model.buffers()]
    return sum(part.nbytes for part in held), sum(part.numel() for part in model.parameters())


def least(model: torch.nn.Module, tokens: int, rows: int = 1) -> float:
    """Seconds that this many forwards of `rows` tokens need: all weights are read, and multiplied with each row."""
    size, numbers = weights_of(model)
    return tokens * max(size / limits().read, 2 * numbers * rows / limits().float32)


def reading(model: gn.DecoderOnly, folder: Path, T: int) -> None:
    """Race the forward of a whole prompt."""
    import transformers

    other = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.randint(0, 256, (1, T))
    c = model.config
    numbers = weights_of(model)[1] - model.input.tokens.weight.numel()
    flops = 2 * numbers * T + 2 * T * T * c.d_model * c.n_layers  # half of the scores, and of what they weigh

    def ours_() -> object:
        return model.head(model.hidden(ids)[:, -1:])

    with torch.no_grad():
        runs_ = {"transformers": lambda: other(ids, logits_to_keep=1), "gnomon": ours_}
        race(f"Reading a prompt of {T}", runs_, ROUNDS, limit=flops / limits().float32)


def drafted(model: gn.DecoderOnly, prompt: list[int]) -> None:
    """Race strategies that may write several tokens a forward on a prompt that is to be repeated."""
    again = prompt * 3
    strategies = {
        "greedy": None,
        "prompt look-up": gn.generate.Lookup(),
        "contrastive": gn.generate.Contrastive(),
    }
    writers = {name: ours(model, strategy) for name, strategy in strategies.items()}
    race(f"A text that repeats itself: {BATCHED} new tokens", runs(writers, [again], BATCHED), ROUNDS, 1)


def random_gpt2() -> None:
    """Race one stream of GPT-2 small with random weights."""
    sizes = {"n_layers": 2, "d_model": 64, "n_heads": 2, "vocab_size": 300} if SMOKE else {}
    model = gn.DecoderOnly.from_preset("gpt2-small", **sizes).eval()
    with tempfile.TemporaryDirectory() as room:
        writers = {}
        try:
            writers["transformers"] = of_transformers(gn.save_hf(model, Path(room) / "hf"))
        except ImportError as error:
            print(f"left out: transformers ({error})", file=sys.stderr)
        writers["gnomon"] = ours(model)
        race(
            f"GPT-2 small, random: {NEW} new tokens",
            runs(writers, [[1, 2, 3]], NEW),
            ROUNDS,
            1,
            limit=least(model, NEW),
        )


def random_translator() -> None:
    """Race an encoder-decoder, greedy, with a Marian of the same sizes; both with random weights."""
    import transformers

    d, layers, heads, vocab, S = (32, 1, 2, 90, 5) if SMOKE else (256, 4, 8, 4000, 16)
    config = transformers.MarianConfig(
        vocab_size=vocab,
        d_model=d,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=4 * d,
        decoder_ffn_dim=4 * d,
        max_position_embeddings=256,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
        forced_eos_token_id=None,
    )
    other = transformers.MarianMTModel(config).eval()
    mine = gn.EncoderDecoder(vocab, d, layers, heads, position="sinusoidal", placement="post", activation="relu").eval()
    for rows in (1, 16):
        source = torch.randint(2, vocab, (rows, S))

        def theirs(source: torch.Tensor = source) -> object:
            with torch.no_grad():
                return other.generate(source, max_new_tokens=BATCHED, min_new_tokens=BATCHED, num_beams=1)

        def ours_(source: torch.Tensor = source) -> object:
            more = {"min_new_tokens": BATCHED, "eos_ids": None}
            return mine.generate([[2]] * len(source), source=source.tolist(), max_new_tokens=BATCHED, **more)

        title = f"Encoder-decoder, {rows} sources of {S}: {BATCHED} new tokens"
        race(title, {"transformers Marian": theirs, "gnomon": ours_}, ROUNDS, 1)


def load(name: str, form: str) -> gn.DecoderOnly:
    """The model in a form of its weights; "tiny" is random, and the same each time."""
    if name != "tiny":
        if find(name) is None:
            subprocess.run([sys.executable, "-m", "gnomon", "pull", name], check=True, stdout=sys.stderr)
        return gn.load(name, weights=form, kind=gn.DecoderOnly)
    torch.manual_seed(0)
    model = gn.DecoderOnly(**TINY).eval()
    model.tokenizer = gn.Tokenizer.bytes()
    gn.stored.store(model, form)
    return model


def main() -> None:
    """Load, race, print."""
    name = sys.argv[1] if len(sys.argv) > 1 else "tiny" if SMOKE else "smollm2-135m-instruct"
    models = {form: load(name, form) for form in FORMS}
    tokenizer = models["float32"].tokenizer
    assert tokenizer is not None
    prompt = tokenizer.encode(PROMPT)
    print(f"{machine()}\n{name}; compiled products: {'yes' if gn.native.library() else 'no'}")
    lost(models, torch.tensor([tokenizer.encode((ROOT / "README.md").read_text(encoding="utf-8"))[:1024]]))
    mine = {f"gnomon {form}": ours(model) for form, model in models.items()}
    exact = models["float32"]
    with tempfile.TemporaryDirectory() as room:
        folder = gn.save_hf(load(name, "float32"), Path(room) / "hf")
        writers = {**others(folder, name), **mine}
        need = {f"gnomon {form}": least(model, NEW) for form, model in models.items()}
        need |= {label: least(exact, NEW) for label in writers if label.endswith("float32")}
        race(f"One stream: {NEW} new tokens after {len(prompt)}", runs(writers, [prompt], NEW), ROUNDS, 1, limit=need)
        whole = {label: write for label, write in writers.items() if label.endswith("float32")}
        title = f"A batch of 16: {BATCHED} new tokens each"
        race(title, runs(whole, [prompt] * 16, BATCHED), ROUNDS, 1, limit=least(exact, BATCHED, 16))
        if "transformers float32" in writers:
            beams = {
                "transformers": of_transformers(folder, num_beams=4),
                "gnomon": ours(exact, gn.generate.Beam(4)),
            }
            title = f"Beams of 4: {BATCHED} new tokens"
            race(title, runs(beams, [prompt], BATCHED), ROUNDS, 1, limit=least(exact, BATCHED, 4))
            for T in LENGTHS:
                reading(exact, folder, T)
            random_translator()
    drafted(exact, prompt)
    random_gpt2()


def runs(writers: dict[str, Write], prompts: list[list[int]], n: int) -> dict[str, Callable[[], object]]:
    """Each writer on these prompts."""
    return {label: partial(write, prompts, n) for label, write in writers.items()}


if __name__ == "__main__":
    main()
