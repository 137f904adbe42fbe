"""The package as a whole."""

import subprocess
import sys


def test_importing_the_room_needs_neither_torch_nor_other_heavy_packages() -> None:
    code = "import sys; import gnomon.data; print({'torch', 'transformers', 'matplotlib'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
