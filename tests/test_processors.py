"""The numeric tests once more as on other processors: older instructions, and another number of threads.

Which instructions a processor has decides the order of sums, and with it the last bits of every number. A test that
only holds on the machine where it was written fails here.
"""

import os
import platform
import subprocess
import sys

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

NUMERIC = "tests/attention tests/audit/test_laws.py tests/blocks tests/checkpoints/hf/test_parity.py tests/embed"
NUMERIC += " tests/generate tests/lab tests/models tests/plots tests/positions tests/train tests/test_layout.py"
NUMERIC += " --ignore=tests/plots/test_picture.py --ignore=tests/lab/test_report.py"  # words, and where they stand
AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
#: numpy's own instructions beyond those that every processor of this kind has
NUMPY = {"NPY_DISABLE_CPU_FEATURES": " ".join(name for name in __cpu_dispatch__ if __cpu_features__[name])}

PROCESSORS = {
    "AVX2 only, one thread": {"ATEN_CPU_CAPABILITY": "avx2", **AVX2, **NUMPY, "OMP_NUM_THREADS": "1"},
    "no vector instructions, two threads": {"ATEN_CPU_CAPABILITY": "default", **AVX2, **NUMPY, "OMP_NUM_THREADS": "2"},
}


def run(environment: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Python of its own, without what the test processes were told about threads."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "MKL_", "PYTEST_"))}
    return subprocess.run([sys.executable, *arguments], env=plain | environment, capture_output=True, text=True)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_the_numeric_tests_pass(processor, root, monkeypatch):
    monkeypatch.chdir(root)
    done = run(PROCESSORS[processor], "-m", "pytest", "-q", "-p", "no:cacheprovider", *NUMERIC.split())
    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the switches are those of x86 processors")
def test_what_a_processor_has_is_really_hidden():
    code = "import torch, numpy._core._multiarray_umath as n; print(torch.backends.cpu.get_cpu_capability()); "
    code += "print(sum(n.__cpu_features__[name] for name in n.__cpu_dispatch__))"
    answers = [run(environment, "-c", code).stdout.split() for environment in PROCESSORS.values()]
    assert answers[0] == ["AVX2", "0"]
    assert answers[1] == ["DEFAULT", "0"]
