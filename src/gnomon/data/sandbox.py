"""Chat templates are programs by strangers: they run in Jinja's immutable sandbox, on a budget of work.

The budget counts; it reads no clock, so a template that is refused on one machine is refused on all. Everything that
can take long or grow is counted before or while it happens:

    STEP    a node of the template that is evaluated, an element of a loop, a call
    READ    a character or element that an operation looks at
    WRITE   a character or element that comes to be, even if it is thrown away: ('a' * 10**9) | length

What could write more than it reads (repetition, padding, joining, replacing, formatting) is estimated from above and
counted first. Calls are refused unless listed: sandboxes that list what is forbidden have leaked.
"""

import json
import re
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from datetime import datetime
from functools import wraps
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import LoopControlExtension
from jinja2.runtime import BlockReference, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment, safe_range
from jinja2.utils import Cycler, Joiner, Namespace, pass_context

from gnomon.data.metering import READ, STEP, WRITE, CountWork, GenerationTag

BUDGET, PER_LETTER = 10**8, 1000  #: of work: for any conversation, and more for each letter of it
LONGEST_TEMPLATE = 2**18
_LARGEST_BITS = 4096  # of a whole number
# Widths and precisions in format strings, and those that are computed, with % and with braces. Each looks at a letter
# once: a template may be the one that was written to make them slow.
_WIDTHS, _STARS = re.compile(r"(?<!\d)(\d++)[hlL]*+[.diouxXeEfFgGcrsa]"), re.compile(r"%[-+ #0-9.]*+\*")
_SPECS, _NESTED = re.compile(r"\{[^{}:]*+(:[^{}]*+)"), re.compile(r"\{[^{}]++\{")
MARK = "\U0010fffe"  #: no text has this character; what it marks in a text comes out of a template as it went in
_AS_JSON, _AS_REPR = r"\udbff\udffe", re.compile(r"((?<!\\)(?:\\\\)*)\\U0010fffe")  # as both escape it

_WITHOUT = ("filesizeformat", "pprint", "random", "striptags", "urlize", "wordwrap", "xmlattr")  # filters of web pages
_SHALLOW = frozenset(  # filters that do not look into the elements of what they are given
    [
        "attr",
        "batch",
        "count",
        "d",
        "default",
        "first",
        "float",
        "int",
        "items",
        "last",
        "length",
        "list",
        "map",
        "reject",
        "rejectattr",
        "safe",
        "select",
        "selectattr",
        "slice",
    ]
)
_DEEP_TESTS = frozenset(
    [
        "in",
        "==",
        "eq",
        "equalto",
        "!=",
        "ne",
        ">",
        "gt",
        "greaterthan",
        "ge",
        ">=",
        "<",
        "lt",
        "lessthan",
        "<=",
        "le",
        "lower",
        "upper",
    ]
)
_METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset(
        ["capitalize", "casefold", "center", "count", "endswith", "expandtabs", "find", "index", "isalnum",
         "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isprintable",
         "isspace", "istitle", "isupper", "join", "ljust", "lower", "lstrip", "partition", "removeprefix",
         "removesuffix", "replace", "rfind", "rindex", "rjust", "rpartition", "rsplit", "rstrip", "split",
         "splitlines", "startswith", "strip", "swapcase", "title", "upper", "zfill"]
    ),
    list: frozenset(["copy", "count", "index"]),
    tuple: frozenset(["count", "index"]),
    dict: frozenset(["copy", "get", "items", "keys", "values"]),
    LoopContext: frozenset(["cycle", "changed"]),
    Cycler: frozenset(["next", "reset"]),
}  # fmt: skip


class OverBudget(SecurityError):
    """A template does more work than its budget allows."""


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja as chat templates expect it (the conventions of the transformers library), for one rendering."""

    intercepted_binops = frozenset(["+", "-", "*", "/", "//", "%", "**"])

    def __init__(self, budget: int = BUDGET) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, optimized=False, extensions=[LoopControlExtension, GenerationTag]
        )  # optimised, it would compute constants while it compiles
        self.left = budget
        self.finalize = pass_context(lambda context, value: self.text(value))
        for name in _WITHOUT:
            del self.filters[name]
        del self.globals["lipsum"]
        self.filters |= {"tojson": self.to_json, "string": self.text}
        self.filters = {name: self._filter(name, function) for name, function in self.filters.items()}
        tests: Any = self.tests
        self.tests = {name: self._test(name, function) for name, function in tests.items()}
        self.filters |= {
            "-read": self.read,
            "-text": self.text,
            "-made": self.made,
            "-elements": self.elements,
            "-spend": self.spend,
        }
        self.globals |= {"raise_exception": _raise, "strftime_now": _now}
        self._functions = (dict, Namespace, Cycler, Joiner, safe_range, _raise, _now)

    def load(self, source: str) -> jinja2.Template:
        """The template, with its work counted."""
        return self.from_string(CountWork().visit(self.read_source(source)))

    def read_source(self, source: str) -> nodes.Template:
        """The tree of a template. TemplateSyntaxError where it is none."""
        if len(source) > LONGEST_TEMPLATE:
            raise OverBudget(f"it is {len(source)} letters long, more than {LONGEST_TEMPLATE}")
        return self.parse(source)

    # -------------------------------------------------------------- counting

    def spend(self, work: int) -> None:
        """Take from the budget; OverBudget where it is used up."""
        self.left -= work
        if self.left < 0:
            raise OverBudget("it does more work than a conversation of this length can need")

    def read(self, value: Any, each: int = READ) -> Any:
        """Count a value with all that it holds, as often as it is held, and give it back."""
        stack = [value]
        while stack:
            item = stack.pop()
            item = _attributes(item) if isinstance(item, Namespace) else item
            if isinstance(item, Mapping):
                self.spend(STEP * (1 + 2 * len(item)))
                stack += [*item.keys(), *item.values()]
            elif isinstance(item, (list, tuple, KeysView, ValuesView, ItemsView)):
                self.spend(STEP * (1 + len(item)))
                stack += item
            else:
                self.spend(each * len(item) if isinstance(item, (str, range)) else each)
        return value

    def weigh(self, value: Any) -> int:
        """What a value counts with all that it holds; at least its letters."""
        before = self.left
        self.read(value)
        return before - self.left

    def made(self, value: Any) -> Any:
        """Count a value that came to be, without what it holds."""
        if isinstance(value, (str, list, tuple, Mapping)):
            self.spend(WRITE * len(value))
        elif isinstance(value, int) and value.bit_length() > _LARGEST_BITS:
            raise OverBudget("it computes numbers that are too large")
        return value

    def elements(self, value: Any, each: int = 0) -> Any:
        """What a loop goes through, each element counted."""
        if isinstance(value, Iterator):
            return self._listed(value, each)
        self.spend((STEP + each) * len(value) if hasattr(value, "__len__") else STEP)
        return value

    def _listed(self, values: Iterator[Any], each: int = 0) -> list[Any]:
        listed = []
        for value in values:
            self.spend(STEP + each)
            listed.append(value)
        return listed

    # -------------------------------------------------------------- what templates do

    def text(self, value: Any) -> str:
        """A value as it is written."""
        if isinstance(value, str):
            text = value
        else:
            self.read(value, WRITE)
            text = _AS_REPR.sub(rf"\1{MARK}", str(value))
        self.spend(WRITE * len(text))
        return text

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """An operation on two values, its result counted."""
        self.spend(STEP)
        if operator == "*":
            for sequence, times in ((left, right), (right, left)):
                if isinstance(sequence, (str, list, tuple)) and isinstance(times, int):
                    self.spend(WRITE * len(sequence) * max(times, 0))
        if operator == "%" and isinstance(left, str):
            self.spend(WRITE * self.formatted(left, right))
        if operator in ("*", "**") and isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * abs(right) if operator == "**" else left.bit_length() + right.bit_length()
            if bits > _LARGEST_BITS:
                raise OverBudget("it computes numbers that are too large")
        return self.made(super().call_binop(context, operator, left, right))

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what a template may call."""
        self = __self
        self.spend(STEP * (1 + len(args) + len(kwargs)))
        if isinstance(__obj, LoopContext):  # of a recursive loop
            args = tuple(self.elements(value) for value in args)
        elif isinstance(__obj, _Format) or any(__obj is known for known in self._functions):
            self.read([args, kwargs])
        elif not isinstance(__obj, (Macro, BlockReference, Joiner, Undefined)):
            self._method(__obj, args, kwargs)
        return self.made(super().call(__context, __obj, *args, **kwargs))

    def _method(self, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
        if not any(isinstance(owner, kind) and name in names for kind, names in _METHODS.items()):
            raise SecurityError(f"it calls {name or type(method).__name__!r}, which no chat template needs")
        self.read([owner, args, kwargs] if name not in ("get", "items", "keys", "values") else [args])
        self.spend(WRITE * self._grown(name, owner, args, kwargs))

    def wrap_str_format(self, value: Any) -> Any:
        """`str.format` is counted too; what it is a method of is not to be seen later."""
        inner = super().wrap_str_format(value)
        return None if inner is None else _Format(self, value.__self__, inner)

    def _filter(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        passed = 1 if hasattr(function, "jinja_pass_arg") else 0  # the context, which Jinja hands over itself

        @wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            given = tuple(self._listed(value) if isinstance(value, Iterator) else value for value in args)
            value, rest = given[passed : passed + 1], given[passed + 1 :]
            self.spend(STEP)
            if name not in _SHALLOW:
                self.read([value, rest, kwargs])
            if value:
                self.spend(WRITE * self._grown(name, value[0], rest, kwargs))
            result = function(*given, **kwargs)
            return self.made(self._listed(result) if isinstance(result, Iterator) else result)

        return counted

    def _test(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def counted(*args: Any) -> Any:
            self.spend(STEP)
            if name in _DEEP_TESTS:
                self.read(args)
            return function(*args)

        return counted

    def _grown(self, name: str, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """From above: how much more a filter or method writes than it reads."""
        given = [*args, *kwargs.values()]
        numbers = sum(abs(n) for n in given if isinstance(n, int))
        size = self._size(value)
        match name:
            case "center" | "ljust" | "rjust" | "zfill" | "batch" | "slice":
                return numbers
            case "round":
                return numbers**2
            case "indent" | "expandtabs" | "strip" | "lstrip" | "rstrip" | "trim":
                return (1 + size) * (numbers + sum(len(text) for text in given if isinstance(text, str)))
            case "join":  # the method is the separator's, the filter is given it
                return size * sum(map(self._size, given))
            case "replace" if len(given) > 1:
                found = value.count(str(given[0])) if isinstance(value, str) else size
                return found * self._size(given[1])
            case "sum" if args or kwargs or not all(isinstance(n, (int, float)) for n in value):
                return size * self.weigh(value)
            case "format":
                return self.formatted(value, given)
        return 0

    def _size(self, value: Any) -> int:
        if isinstance(value, (str, list, tuple, range)):
            return len(value)
        return self.weigh(value)

    def formatted(self, pattern: Any, given: Any, braces: bool = False) -> int:
        """From above: what a format string, with % or with braces, writes. Widths and precisions stand in it; those
        that are computed are refused."""
        text = str(pattern)
        if (_NESTED if braces else _STARS).search(text):
            raise SecurityError("it formats with a width that is computed")
        numbers = re.findall(r"\d+", "".join(_SPECS.findall(text))) if braces else _WIDTHS.findall(text)
        widths = sum(int(digits) if len(digits) < 10 else self.left + 1 for digits in numbers)
        return text.count("{" if braces else "%") * (self.weigh(given) + widths)

    def to_json(
        self,
        value: Any,
        ensure_ascii: bool = False,
        indent: Any = None,
        separators: Any = None,
        sort_keys: bool = False,
    ) -> str:
        """JSON as transformers' templates have it: Jinja's own would escape what HTML needs escaped."""
        if indent:  # as deep as Python nests
            self.spend(WRITE * 1000 * (len(indent) if isinstance(indent, str) else abs(indent)))
        encoder = json.JSONEncoder(ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
        pieces = []
        for piece in encoder.iterencode(value):
            self.spend(WRITE * len(piece))
            pieces.append(piece)
        return "".join(pieces).replace(_AS_JSON, MARK)


class _Format:
    """`str.format` of one string."""

    def __init__(self, sandbox: Sandbox, pattern: str, function: Callable[..., str]) -> None:
        self._sandbox, self._pattern, self._function = sandbox, pattern, function

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        self._sandbox.spend(WRITE * self._sandbox.formatted(self._pattern, [*args, *kwargs.values()], braces=True))
        return self._function(*args, **kwargs)


def _attributes(namespace: Namespace) -> Any:
    return object.__getattribute__(namespace, "_Namespace__attrs")


def _raise(message: Any) -> None:
    raise jinja2.TemplateError(message if isinstance(message, str) else "it gives no reason")


def _now(pattern: str) -> str:
    if len(pattern) > 1000:
        raise SecurityError("it writes a date of more than 1000 letters")
    return datetime.now().strftime(pattern)


__all__ = ["BUDGET", "LONGEST_TEMPLATE", "MARK", "PER_LETTER", "OverBudget", "Sandbox"]
