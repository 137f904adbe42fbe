"""The report as JUnit XML, which every service that runs tests can show: a test case a law.

A broken law is a failure; one that could not be seen, does not apply or is broken by design is skipped, with the
reason. There are no times in it, so that the same seed gives the same file.
"""

from xml.etree import ElementTree as ET

from gnomon.audit.finding import Finding
from gnomon.audit.outputs.words import details, size
from gnomon.audit.report import AuditReport


def junit(report: AuditReport) -> str:
    """An XML document of one test suite."""
    failures = len(report.failed)
    counts = {
        "tests": str(len(report.findings)),
        "failures": str(failures),
        "errors": "0",
        "skipped": str(len(report.findings) - failures - report.counts["pass"]),
    }
    root = ET.Element("testsuites", {"name": "gnomon audit", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": report.target, **counts})
    properties = ET.SubElement(suite, "properties")
    for name, value in report.about.items():
        ET.SubElement(properties, "property", {"name": name, "value": str(value)})
    for found in report.findings:
        suite.append(_case(report, found))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True)


def _case(report: AuditReport, found: Finding) -> ET.Element:
    case = ET.Element("testcase", {"classname": f"gnomon.audit.{report.target}", "name": found.law})
    if found.verdict == "FAIL":
        failure = ET.SubElement(case, "failure", {"type": "FAIL", "message": f"{found.sentence} Error {size(found)}"})
        failure.text = "\n".join([found.sentence, *(f"{name}: {text}" for name, text in details(found))])
    elif found.verdict != "pass":
        said = (f"{found.verdict}: {found.note}", found.link)
        ET.SubElement(case, "skipped", {"type": found.verdict, "message": " ".join(filter(None, said))})
    return case


__all__ = ["junit"]
