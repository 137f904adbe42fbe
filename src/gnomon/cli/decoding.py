"""The options that say how a text is written, and the strategy and the constraints that they mean.

Every option belongs to a group of the help and to the strategies that read it; given with another one it is refused.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from gnomon.cli.options import TakesModel
from gnomon.errors import BadValue, unknown

if TYPE_CHECKING:
    from gnomon.data import Tokenizer
    from gnomon.generate import Constraints, Distribution, LanguageModel, Strategy
    from gnomon.generate.hypotheses import EarlyStopping

STRATEGIES = ("greedy", "sample", "beam", "diverse-beam", "contrastive", "speculative", "lookup")
DRAWN = ("sample", "speculative", "lookup")  # these sample where an option of sampling is given
BEAMS = ("beam", "diverse-beam")
RULES: dict[str, "EarlyStopping"] = {"true": True, "false": False, "never": "never"}  # by which a beam ends
READERS: dict[str, Sequence[str]] = {  # who reads an option, where not everybody does
    "temperature": DRAWN,
    "top_k": DRAWN,
    "top_p": DRAWN,
    "min_p": DRAWN,
    "width": BEAMS,
    "length_penalty": BEAMS,
    "early_stopping": BEAMS,
    "n_best": BEAMS,
    "tree": BEAMS,
    "groups": ("diverse-beam",),
    "diversity": ("diverse-beam",),
    "candidates": ("contrastive",),
    "alpha": ("contrastive",),
    "draft": ("speculative",),
    "draft_length": ("speculative", "lookup"),
    "ngram": ("lookup",),
}
SAMPLING = ("temperature", "top_k", "top_p", "min_p")

GROUPS = {
    "What to write about": ["prompt", "prompt_file", "source", "target_lang", "interactive"],
    "How long": ["max_new_tokens", "min_new_tokens", "stop", "eos"],
    "How to choose": ["strategy", "count", "seed"],
    "Sampling": SAMPLING,
    "Beams": ["width", "length_penalty", "early_stopping", "n_best", "groups", "diversity", "tree"],
    "Contrastive search": ["candidates", "alpha"],
    "Drafting": ["draft", "draft_length", "ngram"],
    "Constraints": [
        "repetition_penalty",
        "presence_penalty",
        "frequency_penalty",
        "no_repeat_ngram",
        "bad_words",
        "begin",
    ],
    "What is printed": ["logprobs", "as_json", "quiet"],
}


class GroupedCommand(TakesModel):
    """A command whose help lists its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The groups, and what is in none of them at the end."""
        left = {p.name: p for p in self.get_params(ctx) if isinstance(p, click.Option)}
        for title, names in [*GROUPS.items(), ("Machine", list(left))]:
            records = [left.pop(name).get_help_record(ctx) for name in names if name in left]
            shown = [record for record in records if record is not None]
            if shown:
                with formatter.section(title):
                    formatter.write_dl(shown)


def decoding_options(function: Callable[..., object]) -> Callable[..., object]:
    """Add all of them."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_OPTIONS = [
    click.option(
        "--strategy",
        type=click.Choice(STRATEGIES),
        help="How tokens are chosen.  [default: sample; about a source greedy, unless an option of sampling is given]",
    ),
    click.option(
        "--temperature", "-t", type=float, default=0.8, show_default=True, help="0 takes the best token always."
    ),
    click.option("--top-k", type=int, help="Draw from the k best tokens only."),
    click.option("--top-p", type=float, help="Draw from the fewest tokens whose probabilities reach p in sum."),
    click.option("--min-p", type=float, help="Draw from tokens at least p times as probable as the best."),
    click.option("--width", type=int, default=4, show_default=True, help="Texts that are written side by side."),
    click.option(
        "--length-penalty",
        type=float,
        default=1.0,
        show_default=True,
        help="A score is the sum of log-probabilities / length^PENALTY.",
    ),
    click.option(
        "--early-stopping",
        type=click.Choice(list(RULES)),
        default="false",
        show_default=True,
        help="WIDTH texts have ended: stop at once (true), or if no other is worth more now (false) or ever (never).",
    ),
    click.option("--n-best", type=int, default=1, show_default=True, help="Print so many of the best texts."),
    click.option(
        "--groups", type=int, default=2, show_default=True, help="Groups of a diverse beam, which are equally wide."
    ),
    click.option(
        "--diversity",
        type=float,
        default=0.5,
        show_default=True,
        help="What it costs to write what another group just wrote.",
    ),
    click.option("--tree", is_flag=True, help="Draw all that the beam looked into."),
    click.option("--candidates", type=int, default=4, show_default=True, help="Tokens that are compared at each step."),
    click.option(
        "--alpha", type=float, default=0.6, show_default=True, help="0 to 1: what likeness to the text costs."
    ),
    click.option(
        "--draft", metavar="RUN", help="A smaller model with the same tokenizer; what is written stays the same."
    ),
    click.option("--draft-length", type=int, help="Tokens drafted at a time.  [default: 4, lookup 8]"),
    click.option("--ngram", type=int, default=3, show_default=True, help="Last tokens that are looked up in the text."),
    click.option(
        "--repetition-penalty", type=float, default=1.0, help="Above 1: tokens of prompt and text less likely."
    ),
    click.option("--presence-penalty", type=float, default=0.0, help="Off the logit of each token written before."),
    click.option("--frequency-penalty", type=float, default=0.0, help="The same, for each time it was."),
    click.option("--no-repeat-ngram", type=int, metavar="N", help="No N tokens in a row occur twice."),
    click.option("--bad-words", "bad_words", multiple=True, metavar="TEXT", help="Never write this; may be repeated."),
    click.option("--begin", metavar="TEXT", default="", help="Every text begins with this."),
]


def constraints_of(ctx: click.Context) -> "Constraints":
    """What the options of the group Constraints mean."""
    from gnomon.generate import Constraints

    p = ctx.params
    return Constraints(
        p["repetition_penalty"],
        p["presence_penalty"],
        p["frequency_penalty"],
        p["no_repeat_ngram"],
        p["bad_words"],
        prefix=p["begin"],
    )


def check_options(ctx: click.Context) -> None:
    """Refuse what the chosen strategy does not read, and make it once, so that what is wrong is said at once."""
    name = ctx.params["strategy"]
    typed = [p for p in READERS if _was_typed(ctx, p)]
    for option in typed:
        if name not in READERS[option] and not (name is None and option in SAMPLING):
            flag, readers = option.replace("_", "-"), " or ".join(READERS[option])
            raise BadValue(f"--{flag} goes with --strategy {readers}, not with {name or 'the default'}")
    if ctx.params["count"] > 1 and name is not None and name not in DRAWN:
        raise BadValue(f"--n writes texts that differ by chance, and {name} has none: for a beam take --n-best")
    if name == "speculative" and ctx.params["draft"] is None:
        raise BadValue("--strategy speculative needs --draft RUN, the folder of a smaller model")
    sampling_strategy(ctx, False)
    if name != "speculative":
        strategy_of(ctx, False, None)


def strategy_of(ctx: click.Context, has_source: bool, draft: "LanguageModel | None") -> "Strategy":
    """The strategy that the options mean, for a model that reads a source or not."""
    from gnomon import generate as g

    p, inner = ctx.params, sampling_strategy(ctx, has_source)
    match p["strategy"]:
        case "greedy":
            return g.Greedy()
        case "beam":
            return g.Beam(p["width"], p["length_penalty"], RULES[p["early_stopping"]], p["n_best"])
        case "diverse-beam":
            return g.DiverseBeam(
                p["width"], p["groups"], p["diversity"], p["length_penalty"], RULES[p["early_stopping"]], p["n_best"]
            )
        case "contrastive":
            return g.Contrastive(p["candidates"], p["alpha"])
        case "speculative":
            assert draft is not None
            return g.Speculative(draft, inner, 4 if p["draft_length"] is None else p["draft_length"])
        case "lookup":
            return g.Lookup(inner, p["ngram"], 8 if p["draft_length"] is None else p["draft_length"])
    return inner


def sampling_strategy(ctx: click.Context, has_source: bool) -> "Distribution":
    """Sample, or Greedy where there is a source and nobody asked for chance."""
    from gnomon.generate import Greedy, Sample

    p = ctx.params
    if has_source and p["strategy"] != "sample" and not any(_was_typed(ctx, name) for name in SAMPLING):
        return Greedy()
    return Sample(p["temperature"], p["top_k"], p["top_p"], p["min_p"])


def eos_ids(names: Sequence[str], tokenizer: "Tokenizer") -> list[int]:
    """The ids of --eos: numbers, or texts that are one token."""
    ids = []
    for name in names:
        found = [int(name)] if name.isdecimal() else tokenizer.encode(name, special=True)
        if len(found) != 1:
            raise BadValue(f"--eos {name!r} is {len(found)} tokens and not one: give its id, or use --stop for a text")
        ids += found
    return ids


def _was_typed(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def language_id(code: str, tokenizer: "Tokenizer") -> int:
    """The id of a language's control token: "spa_Latn", or "es" for __es__. BadValue names the nearest codes."""
    controls = tokenizer.controls
    for name in (code, f"__{code}__"):
        if name in controls:
            return controls[name]
    raise unknown("language code", code, [name.strip("_") for name in controls])


__all__ = [
    "GroupedCommand",
    "check_options",
    "constraints_of",
    "decoding_options",
    "eos_ids",
    "language_id",
    "sampling_strategy",
    "strategy_of",
]
