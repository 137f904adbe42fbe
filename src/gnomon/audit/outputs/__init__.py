"""A report in the formats of other programs, and as a page; each is one function from a report to text."""

from gnomon.audit.outputs.html import page
from gnomon.audit.outputs.json import json_text
from gnomon.audit.outputs.junit import junit
from gnomon.audit.outputs.sarif import sarif
from gnomon.audit.outputs.table import text_table
from gnomon.audit.report import SPOKEN, WRITERS, save

WRITERS |= {".html": page, ".json": json_text, ".sarif": sarif, ".txt": text_table, ".xml": junit}

__all__ = ["SPOKEN", "WRITERS", "json_text", "junit", "page", "sarif", "save", "text_table"]
