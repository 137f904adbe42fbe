"""Tasks on real data that can be checked exactly. Each kind of task is one file in this package.

To add a kind: put one file here (or in a module of your own, given to `--import`) that defines a frozen dataclass
derived from `Kind`. Its fields are its settings: a table of the TOML file, and `--set NAME.FIELD=...`.

    @dataclass(frozen=True)
    class Reversal(Kind):
        name, about = "reversal", "Write a word backwards."
        default_model = {"architecture": "encoder-decoder", "d_model": 64, "n_layers": 2, "n_heads": 4}
        default_train = TrainConfig(steps=500)
        count: int = 10_000

        def texts(self): ...                            # what a vocabulary is learned from; never what is held out
        def task(self, tokenizer, config, quiet): ...   # a gnomon.train.Task: batches, a measure, samples

`gnomon train --task reversal` then trains it, `--resume` goes on with it and `gnomon eval` measures it again.
"""

from gnomon.tasks.classes import classify
from gnomon.tasks.kind import Kind, find, kinds, saved_kind
from gnomon.tasks.masked import fill
from gnomon.tasks.run_evaluation import evaluate
from gnomon.tasks.spans import find_spans

__all__ = ["Kind", "classify", "evaluate", "fill", "find", "find_spans", "kinds", "saved_kind"]
