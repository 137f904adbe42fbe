"""The documentation site: Sphinx reads the pages beside this file and what reference.py writes from the package."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import reference  # noqa: E402

import gnomon  # noqa: E402

project = "Gnomon"
author = "The Gnomon authors"
project_copyright = author
version = release = gnomon.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
exclude_patterns = ["_build", "locale"]
suppress_warnings = ["misc.highlighting_failure"]  # what a command prints is not a language

html_theme = "furo"
html_title = "Gnomon"
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
templates_path = ["templates"]
locale_dirs = ["locale"]
gettext_compact = False
gettext_uuid = False

autodoc_typehints = "signature"
autodoc_member_order = "bysource"


def setup(app):
    """Write the generated pages before Sphinx looks for pages; set docstrings as they were written."""
    reference.write(HERE / "reference")
    app.connect("autodoc-process-docstring", reference.as_written)
