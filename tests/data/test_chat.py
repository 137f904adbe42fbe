"""Chat templates: exactly one begin-of-text, control tokens from the template alone, and a sandbox around it."""

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


def tokenizer(template: str | None, begun: bool = False) -> Tokenizer:
    import tokenizers

    core = tokenizers.Tokenizer.from_str(Tokenizer.bytes().to_json())
    core.add_special_tokens(list(MARKS))
    if begun:
        core.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", core.token_to_id("<s>"))]
        )
    return Tokenizer(core.to_str(), chat_template=template)


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
