"""`gnomon audit`: which model, which laws, what is said and written, and what the exit code means."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from gnomon.audit import LAWS
from gnomon.cli.main import cli

STUDENT = '''
import torch
from torch import nn


class Sound(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.head = nn.Embedding(11, 8), nn.Linear(8, 11)

    def forward(self, ids):
        x = self.embedding(ids)
        return self.head(x.cumsum(1) / torch.arange(1, ids.shape[1] + 1)[:, None])


class Ahead(Sound):
    def forward(self, ids):
        x = self.embedding(ids)
        return self.head(x + x.mean(1, keepdim=True))


class Hostile(Sound):
    """What it raises would paint the terminal red."""
    def forward(self, ids):
        if len(ids) > 1:
            raise RuntimeError("<b>\x1b[31m")
        return super().forward(ids)


class Talks(Sound):
    def forward(self, ids):
        print("forward was called")
        return super().forward(ids)


class Leaves(Sound):
    def forward(self, ids):
        raise SystemExit(0)


def leaves():
    raise SystemExit(0)


NUMBER = 3
'''


@pytest.fixture(autouse=True)
def student(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with student.py, which is the current one."""
    (tmp_path / "student.py").write_text(STUDENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "student", raising=False)
    return tmp_path


def gnomon(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["audit", *arguments])


# ------------------------------------------------------------------ exit codes


def test_what_a_model_prints_is_not_in_the_report() -> None:
    result = gnomon("student:Talks", "--only", "causality", "--json")
    assert json.loads(result.stdout)["ok"] is True
    assert "forward was called" in result.stderr


def test_a_function_that_exits_does_not_pass_for_an_audit() -> None:
    result = gnomon("student:Leaves")
    assert (result.exit_code, "student:Leaves ended the process" in result.stderr) == (3, True)
    result = gnomon("student:leaves")
    assert result.exit_code == 3
    assert "student:leaves was called and raised SystemExit" in result.stderr


def test_a_sound_model_exits_with_0_and_a_broken_one_with_1() -> None:
    sound, ahead = (gnomon(f"student:{name}", "--only", "causality") for name in ("Sound", "Ahead"))
    assert (sound.exit_code, ahead.exit_code) == (0, 1), sound.output + ahead.output
    assert "obeys every law" in sound.stdout
    assert "FAIL  causality" in ahead.stdout


def test_an_audit_that_judges_nothing_says_what_is_missing_and_exits_with_1() -> None:
    result = gnomon("student:Sound", "--only", "left padding changes")
    assert result.exit_code == 1
    assert "told to take a mask of real tokens: Torch(model, masked=...)." in " ".join(result.stdout.splitlines()[-2:])
    assert gnomon("student:Sound", "--only", "left padding changes", "--fail-on", "never").exit_code == 0


def test_fail_on_adds_verdicts_or_takes_all_away() -> None:
    lacking = ("student:Sound", "--only", "causality", "--only", "left padding")
    assert gnomon(*lacking).exit_code == 0
    assert gnomon(*lacking, "--fail-on", "fail").exit_code == 0
    assert gnomon("student:Ahead", "--only", "causality", "--fail-on", "fail").exit_code == 1
    assert gnomon(*lacking, "--fail-on", "by-design", "--fail-on", "not-observable").exit_code == 0
    assert gnomon(*lacking, "--fail-on", "not-applicable").exit_code == 1
    assert gnomon("student:Ahead", "--only", "causality", "--fail-on", "not-applicable").exit_code == 1
    assert gnomon("student:Ahead", "--only", "causality", "--fail-on", "never").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say what to audit"),
        (["student:Sound", "--only", "causalty"], "did you mean 'causality'"),
        (["student:Sound", "--fail-on", "never", "--fail-on", "by-design"], "contradict"),
        (["student:Sound", "--fail-on", "pass"], "--fail-on"),
        (["student:Sound", "--only", "causality", "--skip", "causality"], "nothing would be audited"),
        (["student:Sound", "--junit", "a.xml", "--html", "./a.xml"], "two reports"),
        (["student:Sound", "--seed", str(2**64)], "--seed"),
        (["student:Missing"], "Missing"),
        (["studend:Sound"], "studend"),
        (["student:NUMBER"], "NUMBER"),
        (["student.py"], "name the model in it, or a function that returns one: student.py:Sound, student.py:Ahead, "),
        (["student.py:Aheat"], "unknown name in student.py 'Aheat': did you mean 'Ahead'? Known: Ahead, Hostile, Le"),
    ],
)
def test_what_cannot_be_right_is_one_line_and_exits_with_2(arguments: list[str], message: str) -> None:
    result = gnomon(*arguments)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert message in result.stderr


def test_a_checkpoint_that_is_not_there_exits_with_3() -> None:
    assert gnomon("no/such/run").exit_code == 3


def test_a_wrong_law_is_told_before_the_model_is_made() -> None:
    assert "causalty" in gnomon("student:Missing", "--only", "causalty").stderr


# ------------------------------------------------------------------ what is said


def test_json_is_one_object_and_holds_the_report() -> None:
    result = gnomon("student:Ahead", "--only", "causality", "--json")
    assert result.exit_code == 1
    payload = json.loads(result.stdout)
    assert payload["schema_version"] == 1
    assert payload["ok"] is False
    assert [(f["law"], f["verdict"]) for f in payload["findings"]] == [("causality", "FAIL")]


def test_the_same_command_says_the_same() -> None:
    assert gnomon("student:Ahead", "--only", "c").stdout == gnomon("student:Ahead", "--only", "c").stdout


def test_the_laws_are_listed_with_sentence_and_source() -> None:
    shown, listed = gnomon("--laws").stdout, json.loads(gnomon("--laws", "--json").stdout)["laws"]
    assert [law["name"] for law in listed] == list(LAWS)
    for law in LAWS.values():
        assert f"{law.name}\n    {law.sentence}\n    Behind it: {law.source}\n" in shown


def test_skip_leaves_out_what_only_takes_in() -> None:
    names = [name for name in LAWS if name.startswith("c")]
    found = json.loads(gnomon("student:Sound", "--only", "c", "--skip", "causality", "--json").stdout)["findings"]
    assert [f["law"] for f in found] == [name for name in names if name != "causality"]


def test_what_a_model_calls_itself_does_not_steer_the_terminal() -> None:
    shown = gnomon("student:Hostile", "--only", "logits are").stdout
    assert "<b>" in shown
    assert "\x1b" not in shown


# ------------------------------------------------------------------ files


def test_every_file_holds_the_finding(student: Path) -> None:
    files = {name: student / f"audit.{name}" for name in ("junit", "sarif", "html")}
    options = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    result = gnomon("student:Hostile", "--only", "logits are", *options)
    assert result.exit_code == 1
    assert all(str(path) in result.stdout for path in files.values())
    assert ET.parse(files["junit"]).find("testsuite/testcase/failure") is not None
    assert json.loads(files["sarif"].read_text())["runs"][0]["results"][0]["ruleId"] == "logits-are-numbers"
    assert "&lt;b&gt;" in files["html"].read_text()
    assert "<b>\x1b" not in files["html"].read_text()


def test_a_sarif_result_points_into_the_students_file(student: Path) -> None:
    gnomon("student:Ahead", "--only", "causality", "--sarif", "audit.sarif")
    (run,) = json.loads((student / "audit.sarif").read_text())["runs"]
    where = run["results"][0]["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"] == "student.py"
    assert STUDENT.splitlines()[where["region"]["startLine"] - 1] == "class Ahead(Sound):"


def test_a_file_that_cannot_be_written_costs_neither_the_table_nor_what_was_there(student: Path) -> None:
    (student / "taken").write_text("mine")
    result = gnomon("student:Sound", "--only", "causality", "--html", "taken/audit.html")
    assert result.exit_code == 3
    assert "obeys every law" in result.stdout
    assert (student / "taken").read_text() == "mine"
    assert {p.name for p in student.iterdir()} - {"__pycache__"} == {"student.py", "taken"}


# ------------------------------------------------------------------ Ctrl-C


def test_ctrl_c_says_what_was_found_and_writes_no_file(student: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    first = next(iter(LAWS))
    law = replace(LAWS[first], name="zzz", check=interrupted)  # type: ignore[arg-type]
    monkeypatch.setitem(LAWS, law.name, law)
    result = gnomon("student:Sound", "--only", first, "--only", "zzz", "--html", "audit.html")
    assert result.exit_code == 130
    assert f"{first}  pass" in result.stdout
    assert "interrupted after 1 of 2 laws" in result.stderr
    assert not (student / "audit.html").exists()
    as_json = gnomon("student:Sound", "--only", first, "--only", "zzz", "--json")
    assert json.loads(as_json.stdout)["error"]["exit_code"] == 130
