"""The shape of the house: which package may import which, one method per file, every public name explained.

Each rule is a function that lists what breaks it. It is asked about our own source, where the list must be empty, and
about a small bad example, where it must not be: a rule that cannot fail guards nothing.
"""

import ast
import importlib
import inspect
import subprocess
import sys
import types
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "gnomon"

# From the bottom up. A package imports from layers below its own; packages in one layer do not know each other.
LAYERS = (
    "kinds",
    "shapes errors show",
    "settings",
    "arrays",
    "native",
    "stored",
    "linear",
    "layout device trace norm glossary available_memory",
    "data",
    "positions",
    "embed",
    "attention",
    "blocks",
    "generate",
    "models",
    "checkpoints",
    "train",
    "tasks",
    "lab audit",
    "plots",
    "explorer",
    "cli",
)
LAYER = {name: height for height, names in enumerate(LAYERS) for name in names.split()}
FRONT_PAGE = ("__init__.py", "__main__.py")  # the public names, gathered from everywhere
LONGEST = 450  # lines; beyond it a file holds more than one idea

# Written in two parts, so that this file does not hold them.
FORBIDDEN = [
    "/".join(("", "work", "")),
    *(".".join((page, "md")) for page in ("architecture", "ecosystem", "seeds", "faults", "claims", "peers", "style")),
    *(".".join((host, top)) for host, top in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"))),
    " ".join(("issues", "show")),
]


@cache
def syntax(code: str) -> tuple[ast.AST, ...]:
    """Every node of some code, parsed once for all rules."""
    return tuple(ast.walk(ast.parse(code)))


# ------------------------------------------------------------------ layers


def packages_imported(file: Path, package: Path) -> Iterator[tuple[int, str]]:
    """Each import of `file` from within the package: the line, and the package or module (or "" for the front page)."""
    inside = (package.name, *file.relative_to(package).parts[:-1])
    for node in syntax(file.read_text(encoding="utf-8")):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = inside[: len(inside) + 1 - node.level] if node.level else ()
            base = ".".join((*above, *([node.module] if node.module else [])))
            modules = [f"{base}.{alias.name}" for alias in node.names] if base == package.name else [base]
        else:
            continue
        for module in modules:
            first, _, rest = module.partition(".")
            if first == package.name:
                yield node.lineno, rest.partition(".")[0] if rest.partition(".")[0] in LAYER else ""


def imports_that_go_up(package: Path) -> list[str]:
    """Imports from a layer above or from a neighbour in the same layer, and packages that have no layer."""
    found = []
    for file in sorted(package.rglob("*.py")):
        part = file.relative_to(package).parts[0].removesuffix(".py")
        if file.relative_to(package).as_posix() in FRONT_PAGE:
            continue
        if part not in LAYER:
            found.append(f"{file.name}: {part!r} has no layer: give it one in LAYERS")
            continue
        for line, other in packages_imported(file, package):
            height = LAYER.get(other, LAYER["plots"])  # the front page shows everything below the plots
            if other != part and height >= LAYER[part]:
                found.append(f"{file.relative_to(package)}:{line}: {part} imports {other or 'the front page'}")
    return found


@pytest.mark.parametrize(
    ("path", "code", "bad"),
    [
        ("positions/mine.py", "from gnomon.models import DecoderOnly", True),
        ("positions/mine.py", "def f():\n    import gnomon.attention.attend", True),
        ("positions/mine.py", "from ..attention import attend", True),
        ("positions/mine.py", "from gnomon import attention", True),
        ("positions/mine.py", "import gnomon as gn", True),
        ("lab/mine.py", "from gnomon.audit import laws", True),
        ("layout.py", "from gnomon.device import set_threads", True),
        ("attic/mine.py", "", True),
        ("positions/mine.py", "from gnomon.positions.base import PositionEncoding\nfrom .waves import angles", False),
        ("positions/mine.py", "import torch\nfrom gnomon.layout import Layout\nfrom gnomon import errors", False),
        ("cli/mine.py", "from gnomon import __version__\nfrom gnomon.plots import heat_map", False),
        ("__init__.py", "from gnomon.cli import main", False),
    ],
)
def test_the_rule_sees_an_import_that_goes_up(tmp_path, path, code, bad):
    file = tmp_path / "gnomon" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(code)
    assert bool(imports_that_go_up(tmp_path / "gnomon")) is bad


def test_no_import_goes_up():
    assert imports_that_go_up(PACKAGE) == []


# ------------------------------------------------------------------ cycles


def modules_imported(package: Path) -> dict[str, set[str]]:
    """The modules of a package that each of them imports, wherever in it: a lazy import is one too. What is imported
    only for annotations (under TYPE_CHECKING) is not, nor is what a module's parent packages import before it."""
    files = {
        ".".join((package.name, *file.relative_to(package).with_suffix("").parts)).removesuffix(".__init__"): file
        for file in sorted(package.rglob("*.py"))
    }
    return {name: {m for m in _imports(name, file, files) if m != name} for name, file in files.items()}


def _imports(name: str, file: Path, known: Collection[str]) -> Iterator[str]:
    code = file.read_text(encoding="utf-8")
    blocks = [node for node in syntax(code) if isinstance(node, ast.If)] if "TYPE_CHECKING" in code else []
    typing = [node for node in blocks if ast.unparse(node.test).endswith("TYPE_CHECKING")]
    annotations = {id(inner) for node in typing for part in node.body for inner in ast.walk(part)}
    around = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    for node in syntax(code):
        if id(node) in annotations:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            above = around[: len(around) + 1 - node.level] if node.level else []
            base = ".".join((*above, *([node.module] if node.module else [])))
            inner = [f"{base}.{alias.name}" for alias in node.names]
            found = {module if module in known else base for module in inner}
            yield from (module for module in found if module in known)


def import_cycles(package: Path) -> list[list[str]]:
    """Groups of modules that import each other, directly or around a ring."""
    imported = modules_imported(package)
    reached: dict[str, set[str]] = {}
    for name in imported:
        reached[name], ahead = set(), [name]
        while ahead:
            new = imported[ahead.pop()] - reached[name]
            reached[name] |= new
            ahead += new
    rings = {tuple(sorted(n for n in reached[name] if name in reached[n])) for name in imported}
    return [list(ring) for ring in sorted(rings) if ring]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a": "import p.b", "b": "from p.a import x"}, [["p.a", "p.b"]]),
        ({"a": "def draw():\n    from p.b import x", "b": "from p import a"}, [["p.a", "p.b"]]),
        ({"a": "from . import b", "b": "from .c import x", "c": "import p.a"}, [["p.a", "p.b", "p.c"]]),
        ({"d/__init__": "from p.d.a import x", "d/a": "from p.d import x"}, [["p.d", "p.d.a"]]),
        ({"d/__init__": "from p.d.a import x", "d/a": "from p.d import b", "d/b": ""}, []),
        ({"a": "import p.b\nimport p.c", "b": "from p.c import x", "c": "import torch"}, []),
        ({"a": "import p.b", "b": "if TYPE_CHECKING:\n    from p.a import x"}, []),
    ],
)
def test_the_rule_sees_modules_that_import_each_other(tmp_path, files, expected):
    for name, code in {"__init__": "", **files}.items():
        file = tmp_path / "p" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code)
    assert import_cycles(tmp_path / "p") == expected


def test_no_two_modules_import_each_other():
    """What is shown does not import who shows it: a drawer or a writer registers itself with what it draws."""
    assert import_cycles(PACKAGE) == []


# ------------------------------------------------------------------ one method, one file


def encodings(package: Path) -> dict[str, list[str]]:
    """Where each encoding lives: its class and its `name`, by the files that define them."""
    classes = {
        file: [node for node in syntax(file.read_text(encoding="utf-8")) if isinstance(node, ast.ClassDef)]
        for file in sorted(package.rglob("*.py"))
    }
    family, homes = {"PositionEncoding"}, defaultdict(list)

    def derived(node: ast.ClassDef) -> bool:
        return bool(family & {b.id if isinstance(b, ast.Name) else getattr(b, "attr", "") for b in node.bases})

    for _ in range(3):  # a subclass may stand before its base
        family |= {node.name for nodes in classes.values() for node in nodes if derived(node)}
    for file, nodes in classes.items():
        for node in nodes:
            if derived(node) or node.name == "PositionEncoding":
                homes[f"class {node.name}"].append(str(file.relative_to(package)))
    return homes


def encodings_out_of_place(package: Path) -> list[str]:
    """Encodings that live outside positions/, in two files, or two in one file."""
    found, tenants = [], defaultdict(list)
    for encoding, files in encodings(package).items():
        if len(files) > 1:
            found.append(f"{encoding} lives in {' and '.join(files)}")
        for file in files:
            tenants[file].append(encoding)
    for file, classes in tenants.items():
        if Path(file).parent != Path("positions"):
            found.append(f"{classes[0]} lives in {file}, not in positions/")
        elif len(classes) > 1 and Path(file).name != "base.py":  # base.py holds the base, which is NoPE
            found.append(f"{file} holds {' and '.join(classes)}")
    return found


GOOD = {
    "positions/base.py": "class PositionEncoding: ...\nclass NoPE(PositionEncoding): ...",
    "positions/a.py": "class A(PositionEncoding): ...\nclass Helper: ...",
}


@pytest.mark.parametrize(
    ("more", "bad"),
    [
        ({}, False),
        ({"positions/b.py": "class B(base.PositionEncoding): ..."}, False),
        ({"positions/b.py": "class A(base.PositionEncoding): ..."}, True),
        ({"blocks/b.py": "class A(nn.Module): ..."}, False),
        ({"positions/b.py": "class B(PositionEncoding): ...\nclass C(B): ..."}, True),
        ({"attention/b.py": "class B(PositionEncoding): ..."}, True),
        ({"models/b.py": "class B(A): ..."}, True),
    ],
)
def test_the_rule_sees_an_encoding_out_of_place(tmp_path, more, bad):
    for path, code in (GOOD | more).items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code)
    assert bool(encodings_out_of_place(tmp_path)) is bad


def test_an_encoding_lives_in_one_file_of_its_own():
    assert encodings_out_of_place(PACKAGE) == []


# ------------------------------------------------------------------ public names


def unexplained(module: types.ModuleType) -> list[str]:
    """Names of `module.__all__`, and public methods of the classes among them, that no docstring explains."""
    found = []
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing):
            methods = [m for m, value in vars(thing).items() if inspect.isfunction(value) and not m.startswith("_")]
            docs = {m: [vars(parent)[m].__doc__ for parent in thing.__mro__ if m in vars(parent)] for m in methods}
            found += [f"{module.__name__}.{name}.{m}" for m in methods if not any(docs[m])]  # an override may inherit
        elif not (inspect.ismodule(thing) or inspect.isfunction(thing)):
            continue  # a constant cannot carry one
        # An inherited docstring explains the parent; a dataclass without one is given its own signature.
        doc = (vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__) or ""
        if not doc.strip() or doc.startswith(f"{name}("):
            found.append(f"{module.__name__}.{name}")
    return found


def packages() -> list[str]:
    return ["gnomon", *(f"gnomon.{init.parent.name}" for init in sorted(PACKAGE.glob("*/__init__.py")))]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(): ...", ["example.f"]),
        ("class f: ...", ["example.f"]),
        ("import dataclasses\n@dataclasses.dataclass\nclass f:\n    x: int", ["example.f"]),
        ("class f:\n    'Says.'\n    def m(self): ...\n    def _n(self): ...", ["example.f.m"]),
        ("class f(dict):\n    'Says.'\n    def update(self): ...", []),
        ("def f():\n    'Says what.'", []),
        ("f = 3", []),
    ],
)
def test_the_rule_sees_a_public_name_without_a_docstring(code, expected):
    module = types.ModuleType("example")
    exec(code, vars(module))
    module.__all__ = ["f"]
    assert unexplained(module) == expected


@pytest.mark.parametrize("package", packages())
def test_every_public_name_is_explained(package):
    module = importlib.import_module(package)
    assert (module.__doc__ or "").strip()
    if package != "gnomon.cli":  # commands are found by file, not by name
        assert unexplained(module) == []


# ------------------------------------------------------------------ progress


def bars_in_pipes(code: str) -> list[int]:
    """Lines of progress bars that are not switched off by `None`, tqdm's word for "where there is no terminal"."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    bars = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "tqdm"]
    return [
        bar.lineno
        for bar in bars
        if not any(k.arg == "disable" and "None" in ast.unparse(k.value) for k in bar.keywords)
    ]


def test_the_rule_sees_a_bar_that_goes_into_a_pipe():
    assert bars_in_pipes("tqdm(x)\ntqdm(x, disable=quiet)\ntqdm(x, disable=quiet or None)\ntqdm.write('')") == [1, 2]


@pytest.mark.slow
def test_no_progress_bar_goes_into_a_pipe():
    assert {file.name: found for file in PACKAGE.rglob("*.py") if (found := bars_in_pipes(file.read_text()))} == {}


# ------------------------------------------------------------------ what an import brings along


def brought_along(code: str, unwanted: list[str]) -> list[str]:
    """Which of `unwanted` are loaded after `code` ran in a fresh interpreter."""
    code = f"import sys\n{code}\nprint(*[name for name in {unwanted!r} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_the_rule_sees_what_an_import_brings_along():
    assert brought_along("import numpy", ["torch", "numpy"]) == ["numpy"]


def test_importing_gnomon_waits_for_nothing():
    assert brought_along("import gnomon", ["torch", "numpy", "matplotlib", "transformers", "tokenizers"]) == []


def test_the_front_page_waits_for_nothing_that_python_itself_does_not():
    code = "sys.argv[1:] = ['--help']\nfrom gnomon.cli.entry import main\nimport io, contextlib\n"
    code += "with contextlib.redirect_stdout(io.StringIO()):\n    main()"
    assert brought_along(code, ["click", "typing", "inspect", "json", "torch"]) == []


@pytest.mark.slow
def test_a_model_class_waits_for_no_compiler_and_no_templates():
    unwanted = ["torch._dynamo", "torch._inductor", "sympy", "jinja2", "matplotlib", "gnomon.checkpoints"]
    assert brought_along("import gnomon\ngnomon.DecoderOnly\nimport gc\nassert gc.isenabled()", unwanted) == []


@pytest.mark.slow
def test_the_library_needs_neither_pictures_nor_oracles():
    libraries = [name for name in packages() if name.removeprefix("gnomon.") not in ("plots", "cli", "explorer")]
    assert brought_along(f"import {', '.join(libraries)}", ["matplotlib", "transformers", "starlette"]) == []


# ------------------------------------------------------------------ files


def too_long(package: Path) -> list[str]:
    """Files with more lines than a reader keeps in mind."""
    lines = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in package.rglob("*.py")}
    return [f"{file.name} has {n} lines" for file, n in sorted(lines.items()) if n > LONGEST]


def test_no_file_is_longer_than_one_idea(tmp_path):
    (tmp_path / "long.py").write_text("x = 1\n" * (LONGEST + 1))
    (tmp_path / "short.py").write_text("x = 1\n" * LONGEST)
    assert too_long(tmp_path) == [f"long.py has {LONGEST + 1} lines"]
    assert too_long(PACKAGE) == []


def forbidden_words(root: Path) -> list[str]:
    """Words in tracked text files that mean nothing to a reader of this repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
    found = []
    for name in filter(None, listed.decode().split("\0")):
        file = root / name
        text = file.read_bytes().decode("utf-8", errors="ignore").lower() if file.is_file() else ""
        found += [f"{name} mentions {word}" for word in FORBIDDEN if word in text]
    return found


def test_the_rule_sees_a_forbidden_word(tmp_path):
    (tmp_path / "page.md").write_text(f"See {FORBIDDEN[1]}.")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert forbidden_words(tmp_path) == []
    subprocess.run(["git", "add", "page.md"], cwd=tmp_path, check=True)
    assert forbidden_words(tmp_path) == [f"page.md mentions {FORBIDDEN[1]}"]


def test_the_repository_speaks_of_gnomon_alone():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: which files are tracked is not known")
    assert forbidden_words(ROOT) == []
