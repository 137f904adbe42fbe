"""Conversations as token ids: the model's own template, which alone may write control tokens.

A chat template is a small Jinja program that came with the model, see ``gnomon.data.sandbox``. What people write is
never read as control tokens, whatever strings it holds: control strings in it are hidden while the template runs, and
come back as the text they are. Where a text begins or ends with a part of one, a mark keeps it apart from what the
template, or another text, writes beside it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jinja2
from jinja2.meta import find_undeclared_variables

from gnomon.data.sandbox import BUDGET, MARK, PER_LETTER, Sandbox
from gnomon.data.tokenizer import Tokenizer
from gnomon.data.tokenizers_library import hidden_name
from gnomon.errors import BadInput, BadValue, unknown

#: {"role": "user", "content": "Hello"}; roles: "system", "user", "assistant", and what else a template knows. A content
#: may be what templates take besides texts, such as a list of parts
Message = Mapping[str, Any]
Options = Mapping[str, Any]  #: what a template can be given besides: {"enable_thinking": False, "tools": [...]}

_HIDDEN = MARK + "{}" + MARK  # around numbers of control strings in what people wrote; no text has these
_APART = _HIDDEN.format("")  # between what people wrote and what stands beside it
_RESERVED = re.compile(f"[{MARK}\U0010ffff]")
_PROBE = MARK


def chat_ids(
    tokenizer: Tokenizer, messages: Sequence[Message], reply: bool = True, options: Options | None = None
) -> list[int]:
    """The token ids of a conversation, with exactly one begin-of-text where the model expects one.

    reply     end with what the template writes before an answer, so that the model's next tokens are one
    options   the template's own switches, such as enable_thinking, and tools (JSON schemas) and documents

    Raises BadValue where the tokenizer has no template, for messages or options of kinds that no template takes, and
    for an option that this template does not know; BadInput where the template refuses the conversation.
    """
    controls = tokenizer.controls
    names = sorted(controls, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, names)) if names else r"(?!)")

    begins, ends = _halves(names)

    def hide(text: str) -> str:
        clean = _RESERVED.sub("\N{REPLACEMENT CHARACTER}", text)
        clean, inner = pattern.sub(lambda found: _HIDDEN.format(names.index(found[0])), clean), clean.strip()
        if inner.isidentifier():  # a role: templates write "<|" + role + "|>"
            return clean
        if inner.endswith(begins):
            clean = clean.rstrip() + _APART + clean[len(clean.rstrip()) :]
        if inner.startswith(ends):
            clean = clean[: len(clean) - len(clean.lstrip())] + _APART + clean.lstrip()
        return clean

    shown = [_plain(message, hide) for message in _conversation(messages)]
    rendered = render(tokenizer, shown, reply, {name: _plain(value, hide) for name, value in (options or {}).items()})
    marked = pattern.sub(lambda found: hidden_name(controls[found[0]]), rendered)
    text = re.sub(_HIDDEN.format("([0-9]*)"), lambda found: names[int(found[1])] if found[1] else "", marked)
    ids, before = tokenizer.encode(text), tokenizer.frame[0]
    return ids if ids[: len(before)] == before else [*before, *ids]


def render(
    tokenizer: Tokenizer, messages: Sequence[Message], reply: bool = True, options: Options | None = None
) -> str:
    """What the template makes of the messages, as text. The arguments and errors are those of `chat_ids`."""
    if tokenizer.chat_template is None:
        raise BadValue(
            "this model has no chat template, so it was not trained to talk: let it write with gnomon generate, or "
            "take an instruct model"
        )
    given = {
        "bos_token": "",
        "eos_token": "",
        **tokenizer.names,
        "tools": None,
        "documents": None,
        "messages": [_plain(message) for message in _conversation(messages)],
        "add_generation_prompt": reply,
    }
    given |= {name: _plain(value) for name, value in (options or {}).items()}
    sandbox = Sandbox(BUDGET + PER_LETTER * _letters(given))
    try:
        _check(sandbox, tokenizer.chat_template, options or {})
        return sandbox.load(tokenizer.chat_template).render(given)
    except BadValue:
        raise
    except jinja2.TemplateSyntaxError as error:
        raise BadInput(f"the model's chat template is no Jinja: line {error.lineno}: {error.message}") from error
    except Exception as error:  # the template is a program, and may fail in any way
        raise BadInput(f"the model's chat template refuses this conversation: {str(error)[:500]}") from error


def end_of_turn(tokenizer: Tokenizer, options: Options | None = None) -> list[int]:
    """The control ids that the template writes first after an answer: the model ends its turn with one of them."""
    conversation = [{"role": "user", "content": "x"}, {"role": "assistant", "content": _PROBE}]
    _, _, after = render(tokenizer, conversation, reply=False, options=options).rpartition(_PROBE)
    found = sorted((after.find(name), -len(name), i) for name, i in tokenizer.controls.items() if name in after)
    return [found[0][2]] if found else []


def _halves(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What control strings begin with, and what they end with."""
    cuts = [(name[:n], name[n:]) for name in names for n in range(1, len(name))]
    return tuple({begin for begin, _ in cuts}), tuple({end for _, end in cuts})


def _check(sandbox: Sandbox, template: str, options: Options) -> None:
    """BadValue for an option that a template never looks at."""
    if options:
        known = find_undeclared_variables(sandbox.read_source(template))
        known -= {*sandbox.globals, "messages", "add_generation_prompt"}
        for name in options:
            if name not in known:
                raise unknown("option of this model's chat template", name, known)


def _conversation(messages: Any) -> list[Mapping[str, Any]]:
    """The messages, each without the keys whose value is None, as the transformers library hands them over."""
    if isinstance(messages, (str, Mapping)) or not isinstance(messages, Sequence):
        raise BadValue(f"a conversation is a list of messages, got {type(messages).__name__}")
    for n, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise BadValue(
                f"message {n} is {type(message).__name__}: a message is a mapping such as "
                '{"role": "user", "content": "Hello"}'
            )
    return [{key: value for key, value in message.items() if value is not None} for message in messages]


def _plain(value: Any, change: Callable[[str], str] = str) -> Any:
    """The same in plain lists and dicts, whose methods a sandbox knows, with every text changed. A key that is a plain
    word stays: templates look it up."""
    if isinstance(value, str):
        return change(str(value))
    if isinstance(value, Mapping):
        keys = [change(key) if isinstance(key, str) and not key.isidentifier() else key for key in value]
        return dict(zip(keys, (_plain(each, change) for each in value.values()), strict=True))
    if isinstance(value, (list, tuple)):
        return [_plain(each, change) for each in value]
    if value is None or type(value) in (bool, int, float):
        return value
    raise BadValue(
        f"a chat template takes texts, numbers, None, lists and mappings of them, but {type(value).__name__} was given"
    )


def _letters(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(_letters(key) + _letters(each) for key, each in value.items())
    return sum(map(_letters, value)) if isinstance(value, list) else 1


__all__ = ["Message", "Options", "chat_ids", "end_of_turn", "render"]
