"""The report as JSON: `AuditReport.as_dict`, where its keys are explained."""

import json

from gnomon.audit.report import AuditReport


def json_text(report: AuditReport) -> str:
    """One JSON object. Infinities are the word "inf": JSON has no number for them."""
    return json.dumps(report.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)


__all__ = ["json_text"]
