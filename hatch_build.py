"""The wheel's own step: compile src/gnomon/native if there is a compiler, and go on without it if there is none."""

import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Native(BuildHookInterface[Any]):
    """Puts the compiled files into the wheel, which then belongs to one platform and to any Python 3."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files of a wheel are gathered, an editable one's too."""
        folder = Path(self.root) / "src" / "gnomon" / "native"
        why_not = runpy.run_path(str(folder / "build.py"))["build"](folder)
        if why_not:
            self.app.display_warning(f"Gnomon's compiled kernels are left out, and PyTorch does their work: {why_not}")
            return
        build_data["artifacts"].append("src/gnomon/native/*.so")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
