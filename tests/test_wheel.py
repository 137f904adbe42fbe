"""What a release hands out: the sdist, the wheel built from it, and the wheel at work in an environment of its own."""

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from gnomon import __version__

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[1]


def run(*command: object, cwd: Path) -> str:
    """Run a command away from this repository's sources and give back what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist as a package index would get it."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    assert len(list(out.glob("gnomon-*.tar.gz"))) == 1
    return next(out.glob("gnomon-*.whl"))


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has the wheel and, lent by the one that runs the tests, the wheel's dependencies.

    Lent, because installing torch once more takes minutes. A .pth line only lengthens sys.path: the lender's own
    editable Gnomon is not among what it lends, and the first test makes sure of that.
    """
    home = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    python = home / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=home)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip())
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home


def test_the_installed_package_is_the_wheel_and_not_this_repository(clean):
    where = run(clean / "bin" / "python", "-c", "import gnomon; print(gnomon.__file__)", cwd=clean).strip()
    assert Path(where).is_relative_to(clean)


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    sources = {
        f"gnomon/{file.relative_to(ROOT / 'src' / 'gnomon')}"
        for file in (ROOT / "src" / "gnomon").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == sources
    assert "gnomon/py.typed" in held


def test_the_wheel_states_its_licence_and_asks_for_lower_bounds_only(wheel):
    archive = zipfile.ZipFile(wheel)
    information = f"gnomon-{__version__}.dist-info"
    metadata = archive.read(f"{information}/METADATA").decode()
    assert "License-Expression: Apache-2.0" in metadata
    assert b"Apache License" in archive.read(f"{information}/licenses/LICENSE")
    wanted = re.findall(r"^Requires-Dist: (.+)$", metadata, flags=re.MULTILINE)
    assert "torch>=2.9" in wanted
    always = [line for line in wanted if "extra ==" not in line]
    assert all(re.fullmatch(r"[a-z0-9-]+>=[\d.]+", line) for line in always)
    assert any(line.startswith("num2words==0.5.14;") for line in wanted)  # later releases were malicious


def test_the_command_knows_its_version_and_helps(clean):
    assert run(clean / "bin" / "gnomon", "--version", cwd=clean) == f"gnomon {__version__}\n"
    assert "doctor" in run(clean / "bin" / "gnomon", "--help", cwd=clean)


def test_the_library_chooses_a_position_by_name_there(clean):
    code = """
import torch, gnomon as gn
model = gn.DecoderOnly(vocab_size=16, d_model=16, n_layers=1, n_heads=2, position="rope")
print(*model(torch.zeros(2, 5, dtype=torch.long)).shape)
"""
    assert run(clean / "bin" / "python", "-c", code, cwd=clean).split() == ["2", "5", "16"]


def test_it_lists_its_encodings_there(clean):
    listed = json.loads(run(clean / "bin" / "gnomon", "positions", "--json", cwd=clean))["positions"]
    assert {"none", "sinusoidal", "learned", "rope", "alibi", "t5"} <= {encoding["name"] for encoding in listed}


def test_it_trains_on_a_text_and_writes_there(clean, tmp_path):
    (tmp_path / "text.txt").write_text(Path(argparse.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    gnomon = clean / "bin" / "gnomon"
    sizes = ["--tokenizer", "bytes", "--steps", 2, "--batch-size", 2, "--length", 16]
    run(gnomon, "train", "text.txt", *sizes, "--output", "made", "--quiet", cwd=tmp_path)
    written = run(gnomon, "generate", "made", "--prompt", "import ", "--max-new-tokens", 4, cwd=tmp_path)
    assert written.startswith("import ")
    assert len(written) > len("import ")


def test_the_demo_runs_there_from_text_to_page(clean, tmp_path):
    sizes = ["--positions", "none,alibi", "--steps", 2, "--length", 16]
    result = json.loads(run(clean / "bin" / "gnomon", "demo", *sizes, "--output", "out", "--json", cwd=tmp_path))
    assert result["lengths"] == [16, 32, 64, 128, 256]
    assert {"report.html", "report.json", "table.txt"} <= {file.name for file in (tmp_path / "out").iterdir()}
