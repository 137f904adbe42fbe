"""What `gnomon --help` prints, without waiting for anything: not even click, or Python's typing, is imported here."""

import os

COMMANDS = {
    "demo": "Train the same small Transformer under each position encoding and compare them.",
    "train": "Train a model on your text, on the text that is already on this machine, or on another task.",
    "eval": "Measure a trained model on what was held out, with confidence intervals.",
    "generate": "Let a trained model write.",
    "chat": "Talk with a model that was trained for it.",
    "pull": "Fetch a real model by its name, or list those there are.",
    "predict": "Let a trained model label the spans of a text, or tell its class.",
    "fill": "Guess the gaps of a text.",
    "neighbors": "Show what a trained model keeps close together, and a map of it.",
    "lab": "Measure encodings beside each other, far past their training length.",
    "plot": "Draw an encoding, a mask, a norm: heat map, wavelengths, clock hands, scores, biases, gradients.",
    "explore": "Open a local page on which position, attention and generation can be seen to move.",
    "inspect": "Follow a text through a model: ids, vectors, positions, attention, output.",
    "audit": "Find faults of position, masks, caches and tying in any model.",
    "advise": "Recommend a way to let a model read further, or advise against it.",
    "extend": "Let a model read further than it was trained to.",
    "retrofit": "Give a model another position encoding.",
    "convert": "Write a model in the files of another program.",
    "order": "Show that without positions attention cannot tell who bit whom.",
    "positions": "List the position encodings there are.",
    "settings": "List the settings of a model, or explain some of them.",
    "plan": "Count a model's parameters and its cache before you build it.",
    "tokenizer": "Train a tokenizer, or see what one does to a text.",
    "doctor": "Say what this machine has and how fast it multiplies.",
    "completion": "Print the script that completes commands and options in your shell.",
}

SUMMARY = """Choose a Transformer's sense of position by name; see it, test it, measure it.

Start with `gnomon demo`. Every command has --help, and --json for programs."""
OPTIONS = {"--version": "Show the version and exit.", "-h, --help": "Show this message and exit."}
WIDEST = 80  # columns


def front_page(commands: dict[str, str], width: int) -> str:
    """Usage, summary, options and commands, wrapped to so many columns."""
    lines = ["Usage: gnomon [OPTIONS] COMMAND [ARGS]..."]
    for paragraph in SUMMARY.split("\n\n"):
        lines += ["", *("  " + line for line in wrapped(paragraph, width - 2))]
    for title, entries in (("Options:", OPTIONS), ("Commands:", commands)):
        lines += ["", title, *listed(entries, width)]
    return "\n".join(lines) + "\n"


def listed(entries: dict[str, str], width: int) -> list[str]:
    """Names in one column, what they mean in another."""
    first = max(map(len, entries), default=0) + 4
    lines = []
    for name, text in entries.items():
        head, *more = wrapped(text, max(width - first, 10))
        lines += [f"  {name}".ljust(first) + head, *(" " * first + line for line in more)]
    return lines


def wrapped(text: str, width: int) -> list[str]:
    """The words of a text in lines of so many columns."""
    lines = [""]
    for word in text.split():
        line = f"{lines[-1]} {word}".strip()
        lines[-1:] = [line] if len(line) <= width or not lines[-1] else [lines[-1], word]
    return lines


def terminal_width() -> int:
    """Columns to print in: the terminal's, at most WIDEST."""
    columns = os.environ.get("COLUMNS", "")
    try:
        wide = int(columns) if columns.isdecimal() and int(columns) else os.get_terminal_size(1).columns
    except OSError:
        wide = WIDEST
    return max(min(wide, WIDEST) - 2, 50)


__all__ = ["COMMANDS", "SUMMARY", "front_page", "terminal_width"]
