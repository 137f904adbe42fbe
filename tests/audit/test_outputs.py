"""Every format says all that a report says, and nothing that a model calls itself gets out of its place."""

import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from math import inf, nan
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnomon.audit import LAWS, AuditReport, Finding
from gnomon.audit.consequences import AFTER
from gnomon.audit.finding import Verdict
from gnomon.audit.outputs import SPOKEN, WRITERS, junit, page, sarif, save
from gnomon.audit.outputs.words import reason
from gnomon.audit.target import OTHERS
from gnomon.errors import BadInput, BadValue
from gnomon.glossary import LANGUAGES, glossary, translate, words

HOSTILE = "<script>alert('1')</script> & \"quoted\" ]]> \x1b[31m\x00\ud800 {} %s"
NOISE = st.text(max_size=40) | st.sampled_from([HOSTILE, "", "x" * 150, "javascript:alert(1)", "a\nb\tc"])
NUMBERS = st.floats(min_value=0) | st.just(nan)


def finding(law: str, verdict: Verdict, **said: object) -> Finding:
    return Finding(law, f"The sentence of {law}.", verdict, **said)  # type: ignore[arg-type]


@st.composite
def reports(draw: st.DrawFn) -> AuditReport:
    """Any report whose laws are numbered, so that each can be looked for by a name of its own."""
    verdicts = draw(st.lists(st.sampled_from(get_args(Verdict)), max_size=6))
    said = ("where", "smallest", "note", "link", "source")
    findings = [
        Finding(
            f"law-{n}-of-many",
            draw(NOISE),
            verdict,
            draw(NUMBERS),
            draw(NUMBERS),
            **{name: draw(NOISE) for name in said},
        )
        for n, verdict in enumerate(verdicts)
    ]
    return AuditReport(draw(NOISE), {"dtype": "float32", "seed": 0, "noise": draw(NOISE)}, tuple(findings))


@pytest.fixture
def report() -> AuditReport:
    """One finding of each verdict, by a model with a hostile name."""
    return AuditReport(
        HOSTILE,
        {"dtype": "float32", "defined": "model.py:12"},
        (
            finding(
                "causality", "FAIL", error=0.5, tolerance=1e-5, where="token 3", smallest="ids [[1]]", note=HOSTILE
            ),
            finding("cached = full", "pass", error=1e-7, tolerance=1e-5),
            finding("table end", "by design", error=inf, note="it clamps", link="https://example.org/a?b&c"),
            finding("shift", "not observable", note="seen by: rope"),
            finding("beam", "not applicable", note="has no cache"),
        ),
    )


# ------------------------------------------------------------------ all formats


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(reports())
def test_every_finding_appears_in_every_format(report: AuditReport) -> None:
    for ending, write in WRITERS.items():
        text = write(report)
        for found in report.findings:
            assert found.law in text, ending


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(reports())
def test_every_format_is_text_that_a_file_and_a_terminal_can_hold(report: AuditReport) -> None:
    for write in WRITERS.values():
        assert all(c.isprintable() or c in "\n\u202f" for c in write(report))  # the space within numbers
        write(report).encode()


def test_the_same_report_gives_the_same_files(report: AuditReport) -> None:
    again = AuditReport(report.target, report.about, report.findings)
    assert [write(report) for write in WRITERS.values()] == [write(again) for write in WRITERS.values()]


@pytest.mark.parametrize("ending", WRITERS)
def test_what_is_written_is_there_whole_or_not_at_all(
    report: AuditReport, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"audit{ending}"
    report.save(path)
    before = path.read_text(encoding="utf-8")
    assert before == WRITERS[ending](report).rstrip("\n") + "\n"

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput, match="No space left"):
        AuditReport("another", {}, ()).save(path)
    assert path.read_text(encoding="utf-8") == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_ending_that_says_no_format_names_the_nearest(report: AuditReport, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="did you mean '.html'"):
        report.save(tmp_path / "audit.htm")
    save(report, tmp_path / "audit.htm", ".html")
    assert (tmp_path / "audit.htm").read_text(encoding="utf-8").startswith("<!doctype html>")


# ------------------------------------------------------------------ the table


@settings(max_examples=25, deadline=None)
@given(reports(), st.integers(80, 120))
def test_no_line_of_the_table_is_wider_than_the_terminal(report: AuditReport, width: int) -> None:
    assert max(map(len, report.table(width).splitlines())) <= width


def test_colour_adds_nothing_to_the_words(report: AuditReport) -> None:
    painted = report.table(colour=True)
    assert "\x1b[" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == report.table() == str(report)


def test_the_table_says_what_to_do_about_a_failure(report: AuditReport) -> None:
    text = str(report)
    for said in (
        "50\u202f000 times the tolerated 1e-05",
        "token 3",
        "ids [[1]]",
        "it clamps",
        "https://example.org/a?b&c",
    ):
        assert said in text
    counts = "5 laws: 1 FAIL, 1 pass, 1 not observable, 1 by design, 1 not applicable."
    assert counts in " ".join(text.splitlines()[-4:])


def test_laws_with_one_reason_stand_together() -> None:
    findings = [finding(name, "not applicable", note="has no cache") for name in ("beam", "reorder")]
    text = str(AuditReport("model", {}, (*findings, finding("other", "not applicable", note="has no mask"))))
    assert "    has no cache (beam, reorder)\n    has no mask (other)\n" in text


def test_what_does_not_apply_is_short() -> None:
    """The model's name is above, and what makes no sense for it is counted."""
    reasons = [("beam", "GPT has no beam"), ("source", OTHERS), ("table", OTHERS)]
    text = str(AuditReport("GPT", {}, tuple(finding(law, "not applicable", note=note) for law, note in reasons)))
    assert f"\n    has no beam (beam)\n    {OTHERS} (2 laws)\n" in text


@pytest.mark.parametrize(
    ("verdicts", "meaning"),
    [
        (["pass", "pass"], "model obeys every law that could be judged."),
        (["pass", "by design"], "model obeys every law that could be judged but 1 law that it breaks by design"),
        (["pass", "not observable"], "1 law could not be seen in it."),
        (["FAIL", "by design"], "model breaks 1 law, and 1 more by design"),
        (["not applicable"], "Nothing was judged about model: the reason."),
        ([], "no law was asked"),
    ],
)
def test_the_last_line_says_what_the_counts_mean(verdicts: list[Verdict], meaning: str) -> None:
    findings = (finding(f"law {n}", verdict, note="the reason") for n, verdict in enumerate(verdicts))
    report = AuditReport("model", {}, tuple(findings))
    assert meaning in " ".join(str(report).split())


# ------------------------------------------------------------------ JSON


def test_json_holds_every_key_of_a_finding_and_no_number_that_json_has_not(report: AuditReport) -> None:
    nans = AuditReport("model", {}, (finding("law", "FAIL", error=nan, tolerance=inf),))
    found = json.loads(WRITERS[".json"](nans), parse_constant=pytest.fail)["findings"][0]
    assert (found["error"], found["tolerance"]) == ("inf", "inf")
    payload = json.loads(WRITERS[".json"](report))
    assert list(payload) == ["format", "target", "about", "ok", "counts", "findings"]
    assert payload["counts"] == dict.fromkeys(get_args(Verdict), 1)
    for key in Finding.__dataclass_fields__:
        assert key in payload["findings"][0]
        assert key in (AuditReport.as_dict.__doc__ or "")


# ------------------------------------------------------------------ JUnit


@settings(max_examples=25, deadline=None)
@given(reports())
def test_junit_counts_what_it_holds(report: AuditReport) -> None:
    suite = ET.fromstring(junit(report)).find("testsuite")
    assert suite is not None
    assert suite.get("name") == report.target
    assert int(suite.get("tests", "")) == len(suite.findall("testcase")) == len(report.findings)
    assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure")) == len(report.failed)
    passed = len(report.of("pass"))
    assert int(suite.get("skipped", "")) == len(suite.findall("testcase/skipped"))
    assert len([case for case in suite.findall("testcase") if len(case) == 0]) == passed


def test_a_skipped_law_says_why(report: AuditReport) -> None:
    root = ET.fromstring(junit(report))
    said = {case.get("name"): [e.get("message") for e in case.findall("skipped")] for case in root.iter("testcase")}
    assert said["table end"] == ["by design: it clamps https://example.org/a?b&c"]
    assert said["beam"] == ["not applicable: has no cache"]
    assert said["cached = full"] == []


# ------------------------------------------------------------------ SARIF


@settings(max_examples=25, deadline=None)
@given(reports())
def test_sarif_has_what_the_standard_requires(report: AuditReport) -> None:
    """Required properties of the 2.1.0 schema, for each kind of object that is written."""
    log = json.loads(sarif(report))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert run["tool"]["driver"]["name"]
    assert run["invocations"][0]["executionSuccessful"] is True
    assert len({rule["id"] for rule in rules}) == len(rules) == len(report.findings)
    assert all(rule["shortDescription"].keys() == rule["help"].keys() == {"text"} for rule in rules)
    notes = run["invocations"][0]["toolExecutionNotifications"]
    for result in run["results"]:
        assert result["ruleId"] == rules[result["ruleIndex"]]["id"]
        assert result["level"] in ("error", "note")
    for note in notes:
        assert note["associatedRule"]["id"] == rules[note["associatedRule"]["index"]]["id"]
        assert note["level"] in ("none", "note")
    assert all(said["message"]["text"] for said in (*run["results"], *notes))
    assert len(run["results"]) + len(notes) == len(report.findings)


def test_only_broken_laws_are_results_and_only_failures_are_errors(report: AuditReport) -> None:
    (run,) = json.loads(sarif(report))["runs"]
    assert [(r["ruleId"], r["level"]) for r in run["results"]] == [("causality", "error"), ("table-end", "note")]
    assert "suppressions" not in run["results"][0]
    (suppression,) = run["results"][1]["suppressions"]
    assert suppression["status"] == "accepted"
    assert suppression["justification"] == "it clamps https://example.org/a?b&c"


def test_sarif_points_to_the_line_of_the_models_class(report: AuditReport) -> None:
    (run,) = json.loads(sarif(report))["runs"]
    where = run["results"][0]["locations"][0]
    assert where["physicalLocation"] == {"artifactLocation": {"uri": "model.py"}, "region": {"startLine": 12}}
    (run,) = json.loads(sarif(AuditReport("model", {}, report.findings)))["runs"]
    assert "physicalLocation" not in run["results"][0]["locations"][0]


# ------------------------------------------------------------------ the page


class Page(HTMLParser):
    """What a browser makes of the page: tags that are open, addresses, and the text."""

    VOID = ("meta", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "srcset", "action")]
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@settings(max_examples=25, deadline=None)
@given(reports())
def test_the_page_is_whole_and_holds_nothing_active(report: AuditReport) -> None:
    read = Page(page(report))
    assert read.open == []
    assert not read.tags & {"script", "img", "link", "iframe", "object", "form", "svg"}
    assert all(address.startswith(("http://", "https://")) for address in read.addresses)


def test_the_page_shows_hostile_names_as_they_are(report: AuditReport) -> None:
    read = Page(page(report))
    assert "<script>alert('1')</script> & \"quoted\" ]]> �[31m�� {} %s breaks 1 law" in read.text
    assert read.addresses == ["https://example.org/a?b&c"]


def test_a_notebook_shows_the_page_in_a_frame(report: AuditReport) -> None:
    class Frame(HTMLParser):
        held = ""

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert tag == "iframe"
            self.held = dict(attrs)["srcdoc"] or ""

    frame = Frame()
    frame.feed(report._repr_html_())
    assert frame.held == page(report)


def test_the_page_asks_no_other_machine() -> None:
    text = page(AuditReport("model", {}, ()))
    assert "default-src 'none'" in text
    assert not re.search(r"url\(|@import|https?://", text)


def test_the_bar_of_an_error_reaches_the_mark_at_what_is_tolerated() -> None:
    def share(error: float, tolerance: float) -> int:
        text = page(AuditReport("model", {}, (finding("law", "pass", error=error, tolerance=tolerance),)))
        (width,) = re.findall(r'<i style="width:(\d+)%">', text)
        return int(width)

    assert [share(0.0, 1e-5), share(1e-5, 1e-5), share(1e-2, 1e-5), share(inf, 1e-5), share(1.0, 0.0)] == [
        0,
        50,
        75,
        100,
        100,
    ]


# ------------------------------------------------------------------ in three languages


def test_every_law_has_a_name_a_sentence_and_a_hint_in_every_language():
    """A law that is new or said anew needs them in the glossary's phrases; until then it is shown in English."""
    known = glossary()["phrases"]
    missing = [text for law in LAWS.values() for text in (law.name, law.sentence, law.hint) if text not in known]
    assert not missing, f"not in the group phrases of glossary.json: {missing}"


def test_a_law_without_a_translation_is_shown_in_english(report):
    text = replace(report, findings=(finding("a law of yours", "FAIL", error=1.0),)).table(lang="pt")
    assert "a law of yours" in text
    assert "The sentence of a law of yours." in text


@pytest.mark.parametrize("lang", ["es", "pt"])
def test_the_table_and_the_page_speak_the_language_asked_for(report, lang):
    w = words("audit", lang)
    for text in (report.table(lang=lang), page(report, lang)):
        for verdict, n in report.counts.items():
            assert w(verdict) in text
            assert w(verdict) == verdict or not n or f"{n} {verdict}" not in text
        assert w("english") in " ".join(text.split())
        assert translate("causality", lang) in text
        assert "(causality)" in text  # the name that --only takes
        assert "0,5" in text
        assert "0.5" not in text
    assert f'<html lang="{lang}">' in page(report, lang)
    assert w("h_broken") in page(report, lang)


def test_what_programs_read_is_the_same_in_every_language(report, tmp_path):
    for ending in WRITERS:
        for lang in LANGUAGES:
            save(report, tmp_path / f"{lang}{ending}", lang=lang)
        written = {(tmp_path / f"{lang}{ending}").read_bytes() for lang in LANGUAGES}
        assert len(written) == (3 if ending in SPOKEN else 1), ending


def test_a_law_that_may_follow_from_another_says_so_in_the_language_of_the_reader():
    note = f'{AFTER} "causality", which is broken too: mend that first'
    text = AuditReport("m", {}, (finding("order is seen", "FAIL", error=1.0, note=note),)).table(lang="es")
    assert "puede deberse a «causalidad», que también se incumple: arregla esa primero" in " ".join(text.split())


def test_a_reason_is_in_the_readers_language_and_keeps_its_models_name():
    w = words("audit", "es")
    assert reason("m has no cache", "m", w) == "m no tiene caché"
    assert reason("has no cache (seen once its weights are drawn larger)", "m", w) == (
        "no tiene caché (visto al sortear sus pesos más grandes)"
    )
    assert reason("m raised a flag nobody knows", "m", w) == "m raised a flag nobody knows"
