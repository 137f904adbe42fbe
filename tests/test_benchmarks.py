"""The benchmarks run; what they measure is for a quiet machine."""

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_the_fastest_benchmarks_run_and_tell_their_results_as_json(root):
    command = [sys.executable, "benchmarks/all.py", "--smoke", "--json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=os.environ, timeout=600)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    (limits,) = (r["limits"] for r in results if "limits" in r)
    assert limits["read"] > 0
    assert limits["float32"] > 0
    races = [r for r in results if "ratio" in r]
    assert {r["benchmark"] for r in races} == {"writing", "help"}
    assert all({"work", "peer", "contestant", "seconds", "ratio", "share_of_limit"} <= r.keys() for r in races)
    told = [r for r in races if r["work"].startswith("One stream")]
    assert {"transformers float32", "gnomon float32", "gnomon int8"} <= {r["contestant"] for r in told}
    assert all(r["share_of_limit"] > 0 for r in told)
