"""The report as SARIF 2.1.0 (OASIS Standard, 27 March 2020), which code hosts show beside the code.

A law is a rule. A broken law is a result: an error, or, where it is broken by design, a note with an accepted
suppression (section 3.35) that carries the reason. The other laws are notifications of the invocation (section 3.58),
not results of the kinds "pass" or "open", for there are readers of SARIF that take any result for a problem. Where the
model's class is defined below the current folder, results point to its line there.
"""

import json
from typing import Any
from urllib.parse import quote

from gnomon.audit.finding import Finding, Verdict
from gnomon.audit.outputs.words import details
from gnomon.audit.report import AuditReport

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
LEVEL: dict[Verdict, str] = {
    "FAIL": "error",
    "by design": "note",
    "pass": "none",
    "not observable": "note",
    "not applicable": "note",
}
BROKEN: tuple[Verdict, ...] = ("FAIL", "by design")

Json = dict[str, Any]


def sarif(report: AuditReport) -> str:
    """A SARIF log of one run."""
    findings = list(enumerate(report.findings))
    run = {
        "tool": {"driver": {"name": "gnomon audit", "rules": [_rule(found) for found in report.findings]}},
        "automationDetails": {"id": f"gnomon audit/{report.target}"},
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [_other(n, f) for n, f in findings if f.verdict not in BROKEN],
            }
        ],
        "results": [_result(report, n, f) for n, f in findings if f.verdict in BROKEN],
        "properties": dict(report.about),
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False, allow_nan=False)


def _rule(found: Finding) -> Json:
    """What the law says, and the paper or the fault behind it."""
    behind = f" Behind this law: {found.source}." if found.source else ""
    return {
        "id": _id(found),
        "name": found.law,
        "shortDescription": {"text": found.sentence},
        "help": {"text": found.sentence + behind},
        "defaultConfiguration": {"level": "error"},
    }


def _result(report: AuditReport, n: int, found: Finding) -> Json:
    """A broken law."""
    said = "\n".join(f"{name}: {text}" for name, text in details(found))
    result: Json = {
        "ruleId": _id(found),
        "ruleIndex": n,
        "level": LEVEL[found.verdict],
        "message": {"text": f"{report.target} breaks the law: {found.sentence}\n{said}"},
        "locations": [_location(report)],
        "partialFingerprints": {"law/v1": f"{report.target}/{found.law}"},
        "properties": dict(found.as_dict()),
    }
    if found.verdict == "by design":
        why = f"{found.note} {found.link}".strip()
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": why}]
    return result


def _other(n: int, found: Finding) -> Json:
    """A law that is obeyed, or about which nothing can be said."""
    reason = f": {found.note}" if found.note else ""
    return {
        "associatedRule": {"id": _id(found), "index": n},
        "level": LEVEL[found.verdict],
        "message": {"text": f"{found.law}: {found.verdict}{reason}"},
        "properties": dict(found.as_dict()),
    }


def _location(report: AuditReport) -> Json:
    """The model by name, and where its class is defined."""
    location: Json = {"logicalLocations": [{"name": report.target, "kind": "object"}]}
    file, _, line = str(report.about.get("defined", "")).rpartition(":")
    if file:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": quote(file)},
            "region": {"startLine": int(line)},
        }
    return location


def _id(found: Finding) -> str:
    """The law's name as an identifier: "cached = full" is cached-full."""
    return "-".join("".join(c if c.isalnum() else " " for c in found.law.lower()).split())


__all__ = ["sarif"]
