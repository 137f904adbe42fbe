"""Trains the small models that the explorer has when none is named, and puts them into the package.

    nice -n 10 python explorer/train_models.py runs/explorer      trains (twenty minutes on two cores), then stores
    python explorer/train_models.py runs/explorer --store         stores again what is trained already

A decoder under each encoding of the demo, by the demo's own recipe and text; a translator of numbers, Spanish to
English; and an encoder that fills gaps. Weights are stored as float16: about a megabyte each. Python's own library is
the text, so the models depend on the version of Python that trained them; seeds and settings are kept beside the
weights.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import torch

import gnomon as gn
from gnomon.explorer.evidence import summarise

MODELS = Path(__file__).parents[1] / "src" / "gnomon" / "explorer" / "models"
LARGEST = 3_000_000  # bytes of a model
DEMO = ("rope", "alibi", "t5", "sinusoidal", "learned", "none")
COMMANDS = {
    "demo": ["demo", "--positions", ",".join(DEMO)],
    "numbers": ["train", "--task", "numbers", "--source", "es", "--target", "en"],
    "masked": ["train", "--task", "masked", "--steps", "1500", "--vocab-size", "512"],
}


def train(folder: Path) -> None:
    """Run the commands that are not done yet."""
    for name, arguments in COMMANDS.items():
        out = folder / name
        if not out.exists():
            command = [sys.executable, "-m", "gnomon", *arguments, "--output", str(out), "--quiet"]
            print(" ".join(command), flush=True)
            subprocess.run(command, check=True)


def store(folder: Path) -> None:
    """Put each model into the package, as float16."""
    shutil.rmtree(MODELS, ignore_errors=True)
    trained = {f"tiny-{name}": folder / "demo" / name for name in DEMO}
    trained |= {"tiny-numbers-es-en": folder / "numbers", "tiny-gaps": folder / "masked"}
    trained = {name: run for name, run in trained.items() if run.is_dir()}
    for name, run in trained.items():
        made = gn.save_model(gn.load(run).to(torch.float16), MODELS / name)
        size = sum(file.stat().st_size for file in made.iterdir())
        assert size <= LARGEST, f"{name} has {size} bytes"
        print(f"{name}: {size} bytes")
    report = json.loads((folder / "demo" / "report.json").read_text(encoding="utf-8"))
    kept = {"settings": {"train_length": report["settings"]["train_length"]}, **summarise(report)}
    (MODELS / "lab.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    about = {"python": sys.version.split()[0], "torch": torch.__version__, "commands": COMMANDS}
    (MODELS / "made.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if "--store" not in sys.argv:
        train(Path(sys.argv[1]))
    store(Path(sys.argv[1]))
