"""`gnomon chat`: messages in, answers out, from a terminal or a pipe."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tokenizers
import torch
from click.testing import CliRunner, Result

import gnomon as gn
from gnomon.checkpoints import save_model
from gnomon.cli.main import cli
from gnomon.generate import Chat, Constraints, Sample

TEMPLATE = "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}<|assistant|>"


@pytest.fixture(scope="module")
def model() -> gn.DecoderOnly:
    core = tokenizers.Tokenizer.from_str(gn.Tokenizer.bytes().to_json())
    core.add_special_tokens(["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"])
    torch.manual_seed(0)
    model = gn.DecoderOnly(261, 32, 2, 4, position="alibi", init_std=0.5, tied=False).eval()
    with torch.no_grad():
        model.head.weight[list(range(32)) + list(range(127, 261))] = 0  # mostly letters, so that the text can be read
    model.tokenizer = gn.Tokenizer(core.to_str(), chat_template=TEMPLATE)
    return model


@pytest.fixture(scope="module")
def run(model: gn.DecoderOnly, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_model(model, tmp_path_factory.mktemp("runs") / "tiny"))


def gnomon(*arguments: str, stdin: str) -> Result:
    return CliRunner().invoke(cli, ["chat", *arguments, "--max-new-tokens", "7"], input=stdin)


def answers(model: gn.DecoderOnly, *texts: str, system: str | None = None) -> list[str]:
    chat = Chat(model, system)
    how = {"strategy": Sample(0.7, None, 0.95), "constraints": Constraints(1.0), "max_new_tokens": 7}
    return [chat.say(text, seed=turn, **how).text for turn, text in enumerate(texts)]


def test_lines_of_a_pipe_are_messages(run: str, model: gn.DecoderOnly) -> None:
    result = gnomon(run, "--system", "Be brief.", stdin="Hi\n\nand?\n")
    assert result.exit_code == 0, result.output
    assert result.stdout == "".join(f"{answer}\n" for answer in answers(model, "Hi", "and?", system="Be brief."))


def test_the_conversation_for_programs(run: str, model: gn.DecoderOnly) -> None:
    payload = json.loads(gnomon(run, "--json", stdin="Hi\n").stdout)
    [answer] = answers(model, "Hi")
    assert payload["messages"] == [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": answer}]


def test_a_template_is_given_its_switches(tmp_path: Path, model: gn.DecoderOnly) -> None:
    """JSON where it is, else a text; what the template does not know, and what is no switch, is said."""
    assert model.tokenizer is not None
    switched = gn.DecoderOnly(261, 32, 2, 4, position="alibi", tied=False).eval()
    switched.load_state_dict(model.state_dict())
    template = "{{ [mood, thinking, tools[0].name] }}" + TEMPLATE
    switched.tokenizer = gn.Tokenizer(model.tokenizer.to_json(), chat_template=template)
    run = str(save_model(switched, tmp_path))
    given = {"mood": "sad", "thinking": False, "tools": [{"name": "clock"}]}
    options = ["--template-option", "mood=sad", "--template-option", "thinking=false"]
    options += ["--template-option", 'tools=[{"name": "clock"}]']
    how = {"strategy": Sample(0.7, None, 0.95), "constraints": Constraints(1.0), "max_new_tokens": 7}
    answer = Chat(switched, options=given).say("Hi", seed=0, **how).text
    assert gnomon(run, *options, stdin="Hi\n").stdout == f"{answer}\n"
    for wrong, says in [("moods=sad", "did you mean 'mood'"), ("mood", "--template-option is NAME=VALUE")]:
        result = gnomon(run, "--template-option", wrong, stdin="Hi\n")
        assert result.exit_code == 2
        assert says in result.stderr


def test_a_model_that_was_not_trained_to_talk_says_so(tmp_path: Path, model: gn.DecoderOnly) -> None:
    plain = gn.DecoderOnly(257, 8, 1, 2)
    plain.tokenizer = gn.Tokenizer.bytes()
    result = gnomon(str(save_model(plain, tmp_path)), stdin="Hi\n")
    assert result.exit_code == 2
    assert "no chat template" in result.stderr


def test_what_is_wrong_with_sampling_is_said_before_a_model_is_loaded() -> None:
    result = gnomon("no such model", "--top-p", "7", stdin="Hi\n")
    assert result.exit_code == 2
    assert "top_p" in result.stderr


@pytest.mark.slow
def test_in_a_terminal_ctrl_c_ends_the_answer_and_ctrl_d_the_program(run: str) -> None:
    """The whole program in a pseudo-terminal: an answer that would never end is interrupted, the next one comes."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "gnomon", "chat", run, "--max-new-tokens", "100000", "--device", "cpu"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TERM": "dumb"}
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    )
    os.close(slave)
    try:
        until(master, "> ")
        os.write(master, b"Hi\n")
        until(master, "Hi\r\n", more=20)
        process.send_signal(signal.SIGINT)
        until(master, "\n> ")
        os.write(master, b"\x04")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)


def until(terminal: int, words: str, more: int = 0) -> None:
    """Read until these words, and so many characters after them, are there."""
    seen, end = "", time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            seen += os.read(terminal, 1 << 16).decode(errors="replace")
        if words in seen and len(seen) - seen.index(words) - len(words) >= more:
            return
    raise AssertionError(f"{words!r} did not appear in {seen!r}")
