"""A virtual environment for each peer, from the package index, with this Gnomon installed into it."""

import hashlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: what Gnomon itself needs (pyproject.toml); torch is pinned, so that all peers run on one
NEEDS = ("torch==2.13.0", "numpy", "safetensors", "tokenizers", "click", "tqdm", "matplotlib", "gguf", "jinja2")
#: releases of lightning that held malicious code
NEVER = ("lightning!=2.6.2,!=2.6.3", "pytorch-lightning!=2.6.2,!=2.6.3")


@dataclass(frozen=True)
class Peer:
    """A library: its name, the requirement it is installed by, the file of its cases and the module it imports as."""

    name: str
    requirement: str
    cases: str

    @property
    def distribution(self) -> str:
        """What its version is asked of."""
        return self.requirement.partition("==")[0]


PEERS = {
    peer.name: peer
    for peer in (
        Peer("torch", "torch==2.13.0", "torch_nn"),
        Peer("positional-encodings", "positional-encodings==6.0.3", "positional_encodings"),
        Peer("rotary-embedding-torch", "rotary-embedding-torch==0.9.1", "rotary_embedding_torch"),
        Peer("litgpt", "litgpt==0.5.13", "litgpt"),
        Peer("x-transformers", "x-transformers==2.31.10", "x_transformers"),
        Peer("transformers", "transformers==5.24.0", "transformers"),
    )
}


def python_of(peer: Peer, folder: Path) -> Path:
    """The interpreter of the peer's environment, which is built unless it stands already.

    An environment is finished when its stamp is there, which names what was installed; another wish builds it anew.
    """
    home = folder / peer.name
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    wanted = "\n".join((sys.version, peer.requirement, *NEEDS, str(ROOT)))
    stamp, wish = home / "finished", hashlib.sha256(wanted.encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wish:
        return python
    print(f"{peer.name}: building its environment in {home}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
    never = folder / "never.txt"
    never.write_text("\n".join(NEVER))
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--constraint", never, peer.requirement, *NEEDS], check=True)
    subprocess.run([*pip, "--no-deps", "--editable", ROOT], check=True)
    stamp.write_text(wish)
    return python
