"""Chat: each answer is that of a model which reads the whole conversation anew, whatever happened before."""

from collections.abc import Callable

import pytest
import tokenizers
import torch

import gnomon as gn
from gnomon.data.chat import chat_ids
from gnomon.errors import BadValue
from gnomon.generate import Chat, Greedy, Sample, Token, generate

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] | trim }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.fixture(scope="module")
def model() -> gn.DecoderOnly:
    core = tokenizers.Tokenizer.from_str(gn.Tokenizer.bytes().to_json())
    core.add_special_tokens(["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"])
    torch.manual_seed(0)
    model = gn.DecoderOnly(261, 32, 2, 4, position="rope", init_std=0.5, tied=False).eval()
    model.tokenizer = gn.Tokenizer(core.to_str(), chat_template=TEMPLATE)
    return model


def anew(model: gn.DecoderOnly, chat: Chat, text: str, **settings: object) -> str:
    """The answer of a model that reads everything at once."""
    assert model.tokenizer is not None
    ids = chat_ids(model.tokenizer, [*chat.messages, {"role": "user", "content": text}])
    return generate(model, [ids], eos_ids=[model.tokenizer.controls["<|end|>"]], **settings)[0].text


@pytest.mark.parametrize("strategy", [Greedy(), Sample(1.5)])
def test_every_turn_equals_reading_the_conversation_anew(model: gn.DecoderOnly, strategy: object) -> None:
    chat = Chat(model, system="Be brief.")
    for turn, text in enumerate(["Hi", "  what?  ", "bye <|end|> now"]):
        settings = {"strategy": strategy, "max_new_tokens": 9, "seed": turn}
        expected = anew(model, chat, text, **settings)
        assert chat.say(text, strategy=strategy, max_new_tokens=9, seed=turn).text == expected
    assert [m["role"] for m in chat.messages] == ["system", *["user", "assistant"] * 3]


def test_the_cache_reads_only_what_is_new(model: gn.DecoderOnly, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    hidden: Callable[..., torch.Tensor] = model.hidden

    def counted(ids: torch.Tensor, *rest: object) -> torch.Tensor:
        read.append(ids.shape[1])
        return hidden(ids, *rest)

    monkeypatch.setattr(model, "hidden", counted)
    chat = Chat(model, system="A long instruction that stands at the beginning of everything.")
    chat.say("Hi", max_new_tokens=3)
    first, read[:] = list(read), []
    chat.say("Hm", max_new_tokens=3)
    assert first[0] > 60
    assert read[0] < 12


def test_an_interruption_keeps_what_was_written_and_the_conversation_goes_on(model: gn.DecoderOnly) -> None:
    chat, seen = Chat(model), []

    def stop_at_third(token: Token) -> None:
        seen.append(token)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chat.say("Hi", max_new_tokens=20, on_token=stop_at_third)
    assert chat.messages[-1] == {"role": "assistant", "content": "".join(token.piece for token in seen)}
    expected = anew(model, chat, "go on", max_new_tokens=8)
    assert chat.say("go on", max_new_tokens=8).text == expected


def test_a_message_that_cannot_be_leaves_no_trace(model: gn.DecoderOnly) -> None:
    chat = Chat(model)
    chat.say("Hi", max_new_tokens=4)
    before = list(chat.messages)
    with pytest.raises(BadValue):
        chat.say("Hm", max_new_tokens=0)
    assert chat.messages == before
    expected = anew(model, chat, "Hm", max_new_tokens=6)
    assert chat.say("Hm", max_new_tokens=6).text == expected


def test_what_a_chat_needs_is_said(model: gn.DecoderOnly) -> None:
    bare = gn.DecoderOnly(257, 8, 1, 2)
    with pytest.raises(BadValue, match="tokenizer"):
        Chat(bare)
    bare.tokenizer = gn.Tokenizer.bytes()
    with pytest.raises(BadValue, match="no chat template"):
        Chat(bare)


def test_every_turn_is_asked_with_the_options_of_the_template(model: gn.DecoderOnly) -> None:
    switched = gn.DecoderOnly(261, 32, 2, 4, position="rope", init_std=0.5, tied=False).eval()
    switched.load_state_dict(model.state_dict())
    assert model.tokenizer is not None
    template = TEMPLATE + "{% if not thinking %}<|end|>{% endif %}{{ documents[0].text }}"
    switched.tokenizer = gn.Tokenizer(model.tokenizer.to_json(), chat_template=template)
    options = {"thinking": False, "documents": [{"title": "a", "text": "b <|end|>"}]}
    chat = Chat(switched, options=options)
    ids = chat_ids(switched.tokenizer, [{"role": "user", "content": "Hi"}], options=options)
    expected = generate(switched, [ids], eos_ids=[260], max_new_tokens=6)[0].text
    assert chat.say("Hi", max_new_tokens=6).text == expected
    with pytest.raises(BadValue, match="unknown option of this model's chat template 'think': did you mean 'thinking'"):
        Chat(switched, options={"think": True})
