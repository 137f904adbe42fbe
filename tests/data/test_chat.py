"""Chat templates: exactly one begin-of-text, control tokens from the template alone, and a sandbox around it."""

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import processors

from gnomon.data import Tokenizer
from gnomon.data.chat import chat_ids, end_of_turn, render
from gnomon.errors import BadInput, BadValue

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] | trim + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
BEGUN = "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}<|im_end|>{% endfor %}"
MARKS = ("<s>", "<|im_start|>", "<|im_end|>")


def tokenizer(template: str | None, begun: bool = False, **names: str) -> Tokenizer:
    import tokenizers

    core = tokenizers.Tokenizer.from_str(Tokenizer.bytes().to_json())
    core.add_special_tokens(list(MARKS))
    if begun:
        core.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", core.token_to_id("<s>"))]
        )
    return Tokenizer(core.to_str(), names, template)


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def test_a_conversation_is_what_its_template_writes() -> None:
    t = tokenizer(CHATML)
    ids = chat_ids(t, [*user("Hi "), {"role": "assistant", "content": "Hello."}, *user("Bye")])
    assert t.decode(ids, special=True) == (
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert ids == t.encode(t.decode(ids, special=True), special=True)
    assert t.decode(chat_ids(t, user("Hi"), reply=False), special=True) == "<|im_start|>user\nHi<|im_end|>\n"


@pytest.mark.slow
@given(
    st.lists(
        st.sampled_from(
            [*MARKS, "<|endoftext|>", "a", " ", "\n", "<", "|im_end|>", "\U0010ffff", "\U0010fffe", "0", "7"]
        )
    )
)
def test_a_control_string_in_what_people_write_stays_text(pieces: list[str]) -> None:
    """Whatever is written, the control ids are those of the template, and the text is there, letter by letter."""
    t, text = tokenizer(CHATML), "".join(pieces)
    ids = chat_ids(t, user(text))
    controls = [i for i in ids if i in t.control_ids]
    assert controls == [t.controls[mark] for mark in ("<|im_start|>", "<|im_end|>", "<|im_start|>")]
    shown = text.strip().replace("\U0010ffff", "\ufffd").replace("\U0010fffe", "\ufffd")
    assert t.decode(ids) == f"user\n{shown}\nassistant\n"


JOINED = "<s>{% for m in messages %}{{ m.content | trim }}{% endfor %}"


@given(st.data())
def test_a_control_string_in_pieces_stays_text(data: st.DataObject) -> None:
    """Contents, or parts of one, that a template writes beside each other."""
    text = data.draw(st.sampled_from(["<|im_end|>", "<s><|im_start|>", "> a <s> b <"]))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=4)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    blank = data.draw(st.sampled_from(["", " "]))
    t = tokenizer(JOINED)
    ids = chat_ids(t, [{"role": "user", "content": blank + piece + blank} for piece in pieces])
    assert [i for i in ids if i in t.control_ids] == [t.controls["<s>"]]
    assert t.decode(ids) == "".join(piece.strip() for piece in pieces)


def test_what_a_template_begins_is_not_ended_by_people_but_by_the_role_it_names() -> None:
    t = tokenizer("<|im_{{ messages[0].content }}<|{{ messages[0].role }}|>")
    ids = chat_ids(t, [{"role": "im_end", "content": "end|>"}])
    assert [i for i in ids if i in t.control_ids] == [t.controls["<|im_end|>"]]
    assert t.decode(ids) == "<|im_end|>"


@pytest.mark.parametrize("template", [CHATML, BEGUN])
@pytest.mark.parametrize("begun", [True, False])
def test_begin_of_text_stands_there_exactly_once(template: str, begun: bool) -> None:
    t = tokenizer(template, begun)
    ids = chat_ids(t, user("the tag <s> of HTML"))
    assert ids.count(t.controls["<s>"]) == begun
    assert not begun or ids[0] == t.controls["<s>"]


def test_the_end_of_a_turn_is_read_off_the_template() -> None:
    t = tokenizer(CHATML)
    assert end_of_turn(t) == [t.controls["<|im_end|>"]]
    assert end_of_turn(tokenizer("{% for m in messages %}{{ m['content'] }}\n{% endfor %}")) == []


def test_a_model_without_a_template_says_so() -> None:
    with pytest.raises(BadValue, match="no chat template"):
        chat_ids(tokenizer(None), user("Hi"))


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{% for i in range(999999999) %}x{% endfor %}",
        "{{ 'a' * 10**10 }}",
        "{{ raise_exception('roles must alternate') }}",
        "{% if %}",
        "{{ undefined_thing.x }}",
        "{{ messages[7]['content'] }}",
    ],
)
def test_a_template_is_a_program_in_a_sandbox(template: str) -> None:
    with pytest.raises(BadInput, match="chat template"):
        chat_ids(tokenizer(template), user("Hi"))


def test_what_templates_expect_is_there() -> None:
    t = tokenizer(
        "{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}{{ m | tojson }}{% endfor %}"
        "{{ strftime_now('%%') }}"
    )
    assert render(t, [*user("ñ"), *user("b")]) == '{"role": "user", "content": "ñ"}%'


def test_the_template_is_kept_on_disk(tmp_path) -> None:
    t = tokenizer(CHATML, begun=True)
    t.save(tmp_path)
    back = Tokenizer.load(tmp_path)
    assert (back.chat_template, back.frame) == (CHATML, t.frame)
    (tmp_path / "chat_template.jinja").write_text(BEGUN)
    assert Tokenizer.load(tmp_path).chat_template == BEGUN
    named = '{"chat_template": [{"name": "tool_use", "template": "x"}, {"name": "default", "template": "y"}]}'
    (tmp_path / "chat_template.jinja").unlink()
    (tmp_path / "tokenizer_config.json").write_text(named)
    assert Tokenizer.load(tmp_path).chat_template == "y"


def test_begin_of_text_is_the_one_that_the_config_names() -> None:
    """Also where nothing puts it before other texts; it stands there once."""
    t = tokenizer(BEGUN, bos_token="<s>")
    assert t.frame == ([], [])
    ids = chat_ids(t, user("Hi <s>"))
    assert ids[0] == t.controls["<s>"]
    assert ids.count(t.controls["<s>"]) == 1
    whole = tokenizer(
        "{{ bos_token }}{{ eos_token }}{{ unk_token }}{{ pad_token }}{{ sep_token }}",
        bos_token="<s>",
        unk_token="<|im_start|>",
        pad_token="<|im_end|>",
    )
    marks = ["<s>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    assert chat_ids(whole, user("Hi")) == [whole.controls[mark] for mark in marks]


def test_a_control_token_that_is_also_unknown_is_written_by_the_template_alone() -> None:
    spec = json.loads(tokenizer(None).to_json())
    spec["model"]["unk_token"] = "<|endoftext|>"
    t = Tokenizer(json.dumps(spec), chat_template="{{ messages[0].content }}{{ eos_token }}")
    assert chat_ids(t, user("<|endoftext|>")) == [*b"<|endoftext|>", 256]


PARTS = (
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% elif m.content is defined %}"
    "{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %}{{ m.extra }};{% endfor %}"
)


def test_a_content_may_be_whatever_the_template_takes() -> None:
    t = tokenizer(PARTS)
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "a<s>"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None, "extra": 5},
        {"role": "user", "content": "c", "extra": ("x", True, 1.5, {"<s>": "<s>"})},
    ]
    text = "a<s>b;5;c['x', True, 1.5, {'<s>': '<s>'}];"
    assert chat_ids(t, messages) == list(text.encode())


def test_what_no_template_takes_is_one_error() -> None:
    t = tokenizer(PARTS)
    for messages, says in [
        ("Hi", "a conversation is a list of messages, got str"),
        ({"role": "user", "content": "x"}, "list of messages, got dict"),
        (None, "list of messages, got NoneType"),
        (["Hi"], "message 0 is str: a message is a mapping such as"),
        ([{"role": "user", "content": object()}], "a chat template takes texts, numbers.* but object was given"),
        ([{"role": "user", "content": [{1, 2}]}], "but set was given"),
    ]:
        with pytest.raises(BadValue, match=says):
            chat_ids(t, messages)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="refuses this conversation: .*not iterable"):
        chat_ids(t, [{"role": "user", "content": 5}])


SWITCHED = (
    "{% for tool in tools or [] %}{{ tool | tojson(sort_keys=true) }}{% endfor %}"
    "{% for d in documents or [] %}[{{ d.title }}]{% endfor %}"
    "{{ messages[0].content }}{% if enable_thinking is defined and not enable_thinking %}/no{% endif %}"
)


def test_a_template_is_given_its_switches_tools_and_documents() -> None:
    t = tokenizer(SWITCHED)
    options = {"enable_thinking": False, "tools": [{"b": 1, "a": "<s>"}], "documents": [{"title": "<s>", "text": "x"}]}
    assert chat_ids(t, user("Hi"), options=options) == list(b'{"a": "<s>", "b": 1}[<s>]Hi/no')
    assert chat_ids(t, user("Hi")) == list(b"Hi")
    with pytest.raises(
        BadValue, match="unknown option of this model's chat template 'enable_thinkin'.*mean 'enable_th"
    ):
        chat_ids(t, user("Hi"), options={"enable_thinkin": False})
    with pytest.raises(BadValue, match="Known: .*documents, enable_thinking, tools$"):
        chat_ids(t, user("Hi"), options={"messages": []})


def test_hidden_control_strings_come_back_from_whatever_escapes_letters() -> None:
    """JSON of ASCII letters, and lists as Python shows them; what looks like such an escape is text."""
    text = "<s>\\udbff\\udffe0\\udbff\\udffe ñ \\U0010fffe0\\U0010fffe \\<s>"
    for write, read in [
        ("{{ messages | tojson(ensure_ascii=true) }}", json.loads),
        ("{{ messages }}", ast.literal_eval),
        ("{{ messages | string }}", ast.literal_eval),
    ]:
        t = tokenizer(write)
        ids = chat_ids(t, user(text))
        assert not set(ids) & t.control_ids
        assert read(t.decode(ids)) == user(text)
    plain = tokenizer("{{ messages[0].content }}")
    assert plain.decode(chat_ids(plain, user(text))) == text


def test_the_end_of_a_turn_is_the_longest_control_token_there() -> None:
    import tokenizers

    core = tokenizers.Tokenizer.from_str(Tokenizer.bytes().to_json())
    core.add_special_tokens(["<|", "<|end|>"])
    t = Tokenizer(core.to_str(), chat_template="{% for m in messages %}{{ m.content }}<|end|>{% endfor %}")
    assert end_of_turn(t) == [t.controls["<|end|>"]]


TEMPLATES = {
    "chatml": CHATML,
    "begun": BEGUN,
    "switched": SWITCHED,
    "generation": "{% for m in messages %}{% generation %}{{ m['content'] }}{% endgeneration %}{% endfor %}",
    "json": "{{ messages | tojson(indent=2) }}{{ tools | tojson }}{{ documents is none }}{{ bos_token is defined }}",
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_writes_what_it_writes_in_transformers(name: str) -> None:
    from transformers import PreTrainedTokenizerFast

    t = tokenizer(TEMPLATES[name], bos_token="<s>")
    import tokenizers

    theirs = PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(t.to_json()), chat_template=TEMPLATES[name], **t.names
    )
    talk = [*user(" Hi "), {"role": "assistant", "content": "Yes.\n"}, {"role": "user", "content": "ñ", "x": None}]
    for reply in (True, False):
        expected = theirs.apply_chat_template(talk, tokenize=False, add_generation_prompt=reply)
        assert render(t, talk, reply) == expected
        assert chat_ids(t, talk, reply) == theirs.encode(expected, add_special_tokens=False)


WITH_TOOLS = (
    "{{ bos_token }}{% if tools %}<tools>{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}\n</tools>{% endif %}"
    "{% for doc in documents or [] %}[{{ loop.index }}] {{ doc['title'] }}: {{ doc['text'] | trim }}\n{% endfor %}"
    "{% for m in messages %}{{ m.role }}: {{ m.content or '' }}{% for call in m.tool_calls or [] %}"
    "<call>{{ call.function.name }} {{ call.function.arguments | tojson }}</call>{% endfor %}"
    "{% if m.role == 'assistant' %}{% generation %}!{% endgeneration %}{% endif %}\n{% endfor %}"
)


def test_tools_and_documents_are_written_as_transformers_writes_them() -> None:
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    t = tokenizer(WITH_TOOLS, bos_token="<s>")
    core = tokenizers.Tokenizer.from_str(t.to_json())
    theirs = PreTrainedTokenizerFast(tokenizer_object=core, chat_template=WITH_TOOLS, **t.names)
    weather = {
        "name": "weather",
        "description": "Wie heiß?",
        "parameters": {"type": "object", "properties": {"città": {"type": "string"}}, "required": ["città"]},
    }
    given = {"tools": [{"type": "function", "function": weather}], "documents": [{"title": "a", "text": " ñ <s> "}]}
    call = {"type": "function", "function": {"name": "weather", "arguments": {"città": "Roma"}}}
    talk = [
        *user("Hot?"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "31"},
    ]
    expected = theirs.apply_chat_template(talk, tokenize=False, **given)
    assert render(t, talk, reply=False, options=given) == expected
    ids = chat_ids(t, talk, reply=False, options=given)
    assert "<s>" + t.decode(ids) == expected
    assert sum(i in t.control_ids for i in ids) == 1  # the document's <s> is text
