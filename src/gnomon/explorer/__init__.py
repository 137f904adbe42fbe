"""The explorer: a page on this machine where position, attention and generation can be seen to move.

`gnomon explore` serves it. Its web source is `explorer/` in the repository; what is built of it lies in `static/` here
and is shipped, so that nobody who uses it needs Node. Panels of pure maths run in the browser. Panels of a model put
questions to this server: a question is a function of `questions`, found by its name.
"""

from gnomon.explorer import evidence, faults, flow, order, space, tables, write  # noqa: F401  their questions register
from gnomon.explorer.app import explorer
from gnomon.explorer.export import export
from gnomon.explorer.serve import Served, serve
from gnomon.explorer.shelf import Shelf, included

__all__ = ["Served", "Shelf", "explorer", "export", "included", "serve"]
