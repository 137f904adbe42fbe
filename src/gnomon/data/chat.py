"""Conversations as token ids: the model's own template, which alone may write control tokens.

A chat template is a small Jinja program that came with the model, so it runs in a sandbox: it can change nothing and
reach no file. What people write is never read as control tokens, whatever strings it holds: control strings in it are
hidden while the template runs, and come back as the text they are.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from gnomon.data.tokenizer import Tokenizer, hidden_name
from gnomon.errors import BadInput, BadValue

Message = Mapping[str, str]  #: {"role": "user", "content": "Hello"}; roles: "system", "user", "assistant"

_HIDDEN = "\U0010fffe{}\U0010fffe"  # around numbers of control strings in what people wrote; no text has these
_RESERVED = re.compile("[\U0010fffe\U0010ffff]")
_PROBE = "\U0010fffe"


def chat_ids(tokenizer: Tokenizer, messages: Sequence[Message], reply: bool = True) -> list[int]:
    """The token ids of a conversation, with exactly one begin-of-text where the model expects one.

    reply   end with what the template writes before an answer, so that the model's next tokens are one

    Raises BadValue where the tokenizer has no template, BadInput where the template refuses the messages.
    """
    controls = {name: i for name, i in tokenizer.controls.items() if i != tokenizer.unk_id}
    names = sorted(controls, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, names)) if names else r"(?!)")

    def hide(text: str) -> str:
        clean = _RESERVED.sub("\N{REPLACEMENT CHARACTER}", text)
        return pattern.sub(lambda found: _HIDDEN.format(names.index(found[0])), clean)

    hidden = [{key: hide(value) for key, value in message.items()} for message in messages]
    rendered = render(tokenizer, hidden, reply)
    marked = pattern.sub(lambda found: hidden_name(controls[found[0]]), rendered)
    text = re.sub(_HIDDEN.format("([0-9]+)"), lambda found: names[int(found[1])], marked)
    ids, before = tokenizer.encode(text), tokenizer.frame[0]
    return ids if ids[: len(before)] == before else [*before, *ids]


def render(tokenizer: Tokenizer, messages: Sequence[Message], reply: bool = True) -> str:
    """What the template makes of the messages, as text."""
    if tokenizer.chat_template is None:
        raise BadValue(
            "this model has no chat template, so it was not trained to talk: let it write with gnomon generate, or "
            "take an instruct model"
        )
    begin = tokenizer.frame[0]
    marks = {
        "bos_token": tokenizer.tokens(begin[:1])[0] if begin else "",
        "eos_token": "" if tokenizer.eos_id is None else tokenizer.tokens([tokenizer.eos_id])[0],
    }
    try:
        template = _environment().from_string(tokenizer.chat_template)
        return template.render(messages=messages, add_generation_prompt=reply, **marks)
    except jinja2.TemplateSyntaxError as error:
        raise BadInput(f"the model's chat template is no Jinja: line {error.lineno}: {error.message}") from error
    except Exception as error:  # the template is a program, and may fail in any way
        raise BadInput(f"the model's chat template refuses this conversation: {error}") from error


def end_of_turn(tokenizer: Tokenizer) -> list[int]:
    """The control ids that the template writes first after an answer: the model ends its turn with one of them."""
    conversation = [{"role": "user", "content": "x"}, {"role": "assistant", "content": _PROBE}]
    _, _, after = render(tokenizer, conversation, reply=False).rpartition(_PROBE)
    found = sorted((after.find(name), i) for name, i in tokenizer.controls.items() if name in after)
    return [found[0][1]] if found else []


def _environment() -> ImmutableSandboxedEnvironment:
    """Jinja as chat templates expect it (the conventions of the transformers library)."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda pattern: datetime.now().strftime(pattern)
    return environment


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


__all__ = ["Message", "chat_ids", "end_of_turn", "render"]
