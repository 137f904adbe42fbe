"""The questions of evidence: `lab`, measured curves of encodings past their training length, and the story `audit`."""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from gnomon.audit.adapters import target as adapted
from gnomon.audit.laws import LAWS
from gnomon.audit.run import audit as ask_laws
from gnomon.errors import BadValue, unknown
from gnomon.explorer.questions import Answer, question, told
from gnomon.glossary import translate
from gnomon.models import Model

INCLUDED = "gnomon demo"  #: the report that comes with the package
REPORT = "report.json"
LARGEST = 64_000_000  # parameters of a model that is audited on the page: a larger one takes minutes in a terminal


@question
def lab(run: str = "") -> Answer:
    """The reports there are, the packaged one and those in ./runs, and one of them: bits per byte by length."""
    found = {INCLUDED: Path(str(files("gnomon.explorer"))) / "models" / "lab.json"}
    found |= {path.parent.name: path for path in sorted(Path("runs").glob(f"*/{REPORT}"))}
    found = {name: path for name, path in found.items() if path.is_file()}
    if not found:
        return {"runs": []}
    name = run or next(iter(found))
    if name not in found:
        raise unknown("report", name, found)
    return {"runs": list(found), "run": name, **summarise(json.loads(found[name].read_text(encoding="utf-8")))}


def summarise(report: dict[str, Any]) -> Answer:
    """What the page shows of a lab's report. Raises BadValue for a file that is none."""
    try:
        kept = ("label", "parameters", "position_parameters", "bits", "extrapolation", "holds_until")
        rows = [{key: row.get(key) for key in kept} for row in report["rows"]]
        trained = report["settings"]["train_length"]
        return {"lengths": report["lengths"], "trained": trained, "rows": rows, "trigram": report.get("trigram")}
    except (KeyError, TypeError) as error:
        raise BadValue(f"that is no report of gnomon lab: it lacks {error}") from error


@told
def audit(model: Model, lang: str = "en", seed: int = 0) -> Iterator[Answer]:
    """One event a law: its verdict, what it says, and the smallest input that shows a failure."""
    size = sum(p.numel() for p in model.parameters())
    if size > LARGEST:
        raise BadValue(
            f"this model has {size} parameters, and its audit takes minutes: gnomon audit MODEL in a terminal"
        )
    target = adapted(model, seed)
    laws = [name for name, law in LAWS.items() if law.concerns(target)]
    for done, law in enumerate(laws, 1):
        with torch.inference_mode(False), torch.enable_grad():  # some laws take gradients
            findings = ask_laws(model, only=[law], seed=seed).findings
        for found in findings:
            said = {
                name: translate(str(getattr(found, name)), lang) for name in ("sentence", "note", "where", "smallest")
            }
            yield {"law": translate(law, lang), "verdict": found.verdict, "done": done, "laws": len(laws), **said}


__all__ = ["audit", "lab", "summarise"]
