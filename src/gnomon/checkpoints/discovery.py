"""What stands in the files of a folder, found by walking it: a file put there is known without being listed."""

import pkgutil
from importlib import import_module
from types import ModuleType
from typing import Any


def discover_families(package: ModuleType) -> dict[str, Any]:
    """The FAMILY of each module of a package; of several that can hold a model the lowest rank comes first."""
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    found = {name: import_module(f"{package.__name__}.{name}").FAMILY for name in names}
    return dict(sorted(found.items(), key=lambda item: (item[1].rank, item[0])))


__all__ = ["discover_families"]
