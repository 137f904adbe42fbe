"""`gnomon generate`: prompts from everywhere, text as it is written, and what a program gets."""

import copy
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from click.testing import CliRunner, Result

import gnomon as gn
from gnomon.checkpoints import save_model
from gnomon.cli.generate import _prompt
from gnomon.cli.main import cli
from gnomon.errors import BadValue
from gnomon.generate import (
    Beam,
    Constraints,
    Contrastive,
    DiverseBeam,
    Greedy,
    Lookup,
    Sample,
    draw,
    generate,
)

DRAWN = Sample(0.8)  # what the command does unless told otherwise
MORE = ("--max-new-tokens", "12", "--device", "cpu")


@pytest.fixture(scope="module")
def model() -> gn.DecoderOnly:
    torch.manual_seed(0)
    model = gn.DecoderOnly(257, 32, 2, 4, position="alibi", init_std=0.5, tied=False).eval()
    with torch.no_grad():
        model.head.weight[list(range(32)) + list(range(127, 257))] = 0  # mostly letters, so that the text can be read
    model.tokenizer = gn.Tokenizer.bytes()
    return model


@pytest.fixture(scope="module")
def run(model: gn.DecoderOnly, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_model(model, tmp_path_factory.mktemp("runs") / "tiny"))


def gnomon(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["generate", *arguments], input=stdin)


def texts(model, prompt, n=1, seed=0, strategy=DRAWN, **settings):
    out = generate(model, [prompt] * n, strategy=strategy, seed=seed, **{"max_new_tokens": 12, **settings})
    return [g.text for g in out]


# ------------------------------------------------------------------ prompts


def test_the_prompt_is_shown_and_what_follows_it(run, model):
    result = gnomon(run, "-p", "Once", *MORE)
    assert result.exit_code == 0, result.output
    assert result.stdout == "Once" + texts(model, "Once")[0] + "\n"
    assert "12 tokens in" in result.stderr
    assert "ended by length" in result.stderr


def test_quiet_prints_only_what_is_new(run, model):
    result = gnomon(run, "-p", "Once", "-q", *MORE)
    assert (result.stdout, result.stderr) == (texts(model, "Once")[0] + "\n", "")


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_prompt_comes_from_a_file_or_standard_input_without_its_last_line_end(run, tmp_path, end):
    file = tmp_path / "prompt.txt"
    file.write_bytes(f"two\n\nlines ñ{end}".encode())
    expected = gnomon(run, "-p", "two\n\nlines ñ", *MORE).stdout
    assert gnomon(run, "--prompt-file", str(file), *MORE).stdout == expected
    assert gnomon(run, "--prompt-file", "-", *MORE, stdin=file.read_bytes()).stdout == expected
    assert gnomon(run, *MORE, stdin=file.read_bytes()).stdout == expected


def test_an_empty_prompt_starts_a_document(run, model):
    assert gnomon(run, "-p", "", *MORE).stdout == texts(model, "")[0] + "\n"


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("options", "strategy"),
    [
        (["--temperature", "0"], Sample(0.0)),
        (["--temp", "0"], Sample(0.0)),
        (["-t", "1.5", "--top-k", "9"], Sample(1.5, top_k=9)),
        (["--top-p", "0.5"], Sample(0.8, top_p=0.5)),
        (["--min-p", "0.3"], Sample(0.8, min_p=0.3)),
    ],
)
def test_the_options_are_the_strategys(run, model, options, strategy):
    assert gnomon(run, "-q", "-p", "ab", *options, *MORE).stdout == texts(model, "ab", strategy=strategy)[0] + "\n"


def test_what_other_programs_call_an_option_works_and_is_not_shown(run, model):
    assert gnomon(run, "-q", "-p", "ab", "--max-tokens", "5").stdout == texts(model, "ab", max_new_tokens=5)[0] + "\n"
    shown = gnomon("--help").output
    assert "--max-new-tokens" in shown
    assert "--max-tokens" not in shown
    assert "--temp " not in shown


def test_several_texts_are_written_in_one_batch_each_with_its_seed(run, model):
    result = gnomon(run, "-p", "ab", "-n", "3", "--seed", "7", *MORE)
    expected = texts(model, "ab", n=3, seed=7)
    assert len(set(expected)) == 3
    heads = [f"--- {i + 1} of 3, seed {7 + i} ---\nab" for i in range(3)]
    assert result.stdout == "".join(head + text + "\n" for head, text in zip(heads, expected, strict=True))
    assert gnomon(run, "-p", "ab", "-q", "-n", "3", "--seed", "7", *MORE).stdout == "\n".join(expected) + "\n"
    assert gnomon(run, "-p", "ab", "-q", "--seed", "9", *MORE).stdout == expected[2] + "\n"


def test_a_stop_text_ends_it(run, model):
    whole = texts(model, "ab")[0]
    result = gnomon(run, "-p", "ab", "--stop", "nowhere", "--stop", whole[5:8], *MORE)
    assert result.stdout == "ab" + whole[: whole.index(whole[5:8])] + "\n"
    assert "ended by stop" in result.stderr


def test_threads_are_set(run):
    before = torch.get_num_threads()
    try:
        assert gnomon(run, "-p", "a", "--threads", str(before + 1), *MORE).exit_code == 0
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)


def test_the_dtype_is_that_of_the_weights_unless_another_is_asked_for(model, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(gn.generate, "generate", lambda model, *_, **__: seen.append(model.head.weight.dtype) or [])
    half = str(save_model(copy.deepcopy(model).half(), tmp_path / "half"))
    for options in ([], ["--dtype", "float32"], ["--dtype", "float64"]):
        assert gnomon(half, "-p", "a", *options).exit_code == 0
    assert seen == [torch.float16, torch.float32, torch.float64]


# ------------------------------------------------------------------ for programs


def test_json_holds_one_object_with_everything(run, model):
    result = gnomon(run, "-p", "ab", "-n", "2", "--seed", "3", "--json", *MORE)
    report = json.loads(result.stdout)
    out = generate(model, ["ab"] * 2, strategy=Sample(0.8), seed=3, max_new_tokens=12)
    assert report["prompt"] == "ab"
    assert report["seconds"] > 0
    assert [text.pop("logprobs") for text in report["texts"]] == [pytest.approx(g.logprobs, abs=1e-4) for g in out]
    assert report["texts"] == [
        {"text": g.text, "ids": g.ids, "finish_reason": g.finish_reason, "seed": g.seed} for g in out
    ]
    assert result.stderr == ""


# ------------------------------------------------------------------ while it writes

SLOW = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a process in the background does not have
from gnomon.cli.main import main
from gnomon.models import DecoderOnly
hidden = DecoderOnly.hidden
def slow(*arguments):
    time.sleep(0.05)
    return hidden(*arguments)
DecoderOnly.hidden = slow
sys.argv[0] = "gnomon"
main()
"""


def slow_run(*arguments: str) -> subprocess.Popen[bytes]:
    """The command in a process of its own, with a model that takes 50 ms a token."""
    command = [sys.executable, "-c", SLOW, "generate", *arguments, "-p", "ab", "--max-new-tokens", "2000"]
    environment = {**os.environ, "PYTHONPATH": str(Path(gn.__file__).parents[1])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


@pytest.mark.slow
def test_text_is_shown_while_it_is_written_and_ctrl_c_keeps_it(run, model):
    with slow_run(run, "-n", "2") as process:
        try:
            seen = b""
            while len(seen.partition(b"---\nab")[2]) < 4:
                seen += process.stdout.read1(1)
                assert process.poll() is None, process.stderr.read()
            process.send_signal(signal.SIGINT)
            rest, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    shown = (seen + rest).decode()
    first, second = shown.split("--- 2 of 2, seed 1 ---\n")
    whole = texts(model, "ab", n=2, max_new_tokens=1000)  # what it would have written in 50 seconds
    for text, expected in ((first.removeprefix("--- 1 of 2, seed 0 ---\nab"), whole[0]), (second[2:], whole[1])):
        assert text.endswith("\n")
        assert expected.startswith(text[:-1].rstrip("\ufffd"))
    assert len(first) > len("--- 1 of 2, seed 0 ---\nab\n")
    assert process.returncode == 130
    assert errors.decode().splitlines()[-1] == "gnomon: interrupted"
    assert "Traceback" not in errors.decode()


def test_an_interrupted_program_still_gets_one_object(run, monkeypatch):
    def interrupted(model, prompts, *, on_token, **settings):
        def watch(token):
            on_token(token)
            if len(seen.append(token) or seen) == 5:
                raise KeyboardInterrupt

        seen = []
        return generate(model, prompts, on_token=watch, **settings)

    monkeypatch.setattr(gn.generate, "generate", interrupted)
    result = gnomon(run, "-p", "ab", "-n", "2", "--json")
    report = json.loads(result.stdout)
    assert [len(text["ids"]) for text in report["texts"]] == [3, 2]
    assert [text["finish_reason"] for text in report["texts"]] == ["interruption"] * 2
    assert result.exit_code == 130


# ------------------------------------------------------------------ strategies, sources, constraints


@pytest.fixture(scope="module")
def translator() -> gn.EncoderDecoder:
    torch.manual_seed(1)
    model = gn.EncoderDecoder(257, 32, 2, 4, position="rope", init_std=0.5, tied=False).eval()
    with torch.no_grad():
        model.head.weight[list(range(32)) + list(range(127, 257))] = 0
    model.tokenizer = gn.Tokenizer.bytes()
    return model


@pytest.fixture(scope="module")
def translation(translator: gn.EncoderDecoder, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_model(translator, tmp_path_factory.mktemp("runs") / "translator"))


@pytest.mark.parametrize(
    ("options", "strategy"),
    [
        ("--strategy greedy", Greedy()),
        ("--strategy sample -t 1.2", Sample(1.2)),
        ("--strategy beam --width 3 --length-penalty 0.5", Beam(3, 0.5, False)),
        ("--strategy beam --early-stopping true", Beam(4, 1.0, True)),
        ("--strategy diverse-beam --width 4 --groups 4 --diversity 2", DiverseBeam(4, 4, 2.0)),
        ("--strategy diverse-beam --early-stopping never", DiverseBeam(4, 2, 0.5, 1.0, "never")),
        ("--strategy contrastive --candidates 3 --alpha 0.4", Contrastive(3, 0.4)),
        ("--strategy lookup --ngram 2 --draft-length 5", Lookup(Sample(0.8), 2, 5)),
        ("--strategy lookup --temperature 0", Lookup(Sample(0.0))),
    ],
)
def test_every_strategy_has_a_name_and_its_options(run, model, options, strategy):
    result = gnomon(run, "-q", "-p", "ab", *options.split(), *MORE)
    assert result.exit_code == 0, result.output
    assert result.stdout == texts(model, "ab", strategy=strategy)[0] + "\n"


def test_a_draft_model_is_loaded_from_its_run(run, model):
    result = gnomon(run, "-q", "-p", "ab", "--strategy", "speculative", "--draft", run, "-t", "0", *MORE)
    assert result.stdout == texts(model, "ab", strategy=Greedy())[0] + "\n"


@pytest.mark.slow
def test_a_source_is_given_or_read_and_the_prompt_begins_the_answer(translation, translator):
    def answer(source, prompt=None, strategy=Greedy()):  # noqa: B008  a value
        return generate(translator, prompt, source=source, strategy=strategy, seed=0, max_new_tokens=12)[0].text

    assert gnomon(translation, "--source", "dos", *MORE).stdout == answer("dos") + "\n"
    assert gnomon(translation, *MORE, stdin="dos\n").stdout == answer("dos") + "\n"
    assert gnomon(translation, "-p", "dos", *MORE).stdout == answer("dos") + "\n"
    assert gnomon(translation, "-s", "dos", "-p", "tw", *MORE).stdout == "tw" + answer("dos", "tw") + "\n"
    assert gnomon(translation, "-s", "dos", "-t", "0.8", *MORE).stdout == answer("dos", strategy=Sample(0.8)) + "\n"
    begun = gnomon(translation, "-s", "dos", "--prompt-file", "-", *MORE, stdin="tw\n").stdout
    assert begun == "tw" + answer("dos", "tw") + "\n"
    report = json.loads(gnomon(translation, "-s", "dos", "--json", *MORE).stdout)
    assert (report["source"], report["prompt"], report["texts"][0]["text"]) == ("dos", None, answer("dos"))


def test_a_target_language_is_written_first(tmp_path):
    torch.manual_seed(1)
    model = gn.EncoderDecoder(258, 16, 1, 2, position="rope", init_std=0.5, tied=False).eval()
    model.tokenizer = gn.Tokenizer.bytes().with_mask()
    folder = str(save_model(model, tmp_path / "spoken"))
    asked = ("-s", "dos", "--target-lang")
    told = json.loads(gnomon(folder, *asked, "[MASK]", "--begin", "a", "--json", *MORE).stdout)["texts"][0]
    out = generate(model, source="dos", constraints=Constraints(prefix=[257, 97]), max_new_tokens=12)[0]
    assert (out.ids[:2], told["text"]) == ([257, 97], out.text)
    assert "unknown language code 'spa'" in gnomon(folder, *asked, "spa", *MORE).output
    assert "give what follows it as --begin" in gnomon(folder, *asked, "[MASK]", "-p", "a", *MORE).output


def test_the_next_best_texts_and_the_tree_follow(translation, translator):
    options = ("-s", "dos", "--strategy", "beam", "--n-best", "3", "--tree", *MORE)
    out = generate(translator, source="dos", strategy=Beam(n_best=3), max_new_tokens=12)[0]
    lines = gnomon(translation, *options).stdout.split("\n")
    others = [f"#{place}  {g.score:+.3f}  {g.text}" for place, g in enumerate(out.alternatives, 2)]
    shown = "\n".join([out.text, *others, "", draw(out.tree, translator.tokenizer), ""])
    assert "\n".join(lines) == shown
    report = json.loads(gnomon(translation, *options, "--json").stdout)["texts"][0]
    assert report["score"] == pytest.approx(out.score, abs=1e-4)
    assert [other["ids"] for other in report["alternatives"]] == [g.ids for g in out.alternatives]
    assert len(report["tree"]) == len(out.tree.nodes)


def test_a_terminal_without_unicode_gets_a_tree_in_ascii(run, monkeypatch):
    monkeypatch.setattr("gnomon.cli.live_text._unicode", lambda: False)
    shown = gnomon(run, "-q", "-p", "ab", "--strategy", "beam", "--tree", *MORE).stdout
    assert "`- " in shown
    assert "─" not in shown


def test_log_probabilities_are_shown_with_what_was_likely(run, model):
    out = generate(model, "ab", strategy=DRAWN, seed=0, max_new_tokens=12, top_logprobs=2)[0]
    shown = gnomon(run, "-q", "-p", "ab", "--logprobs", "2", *MORE).stdout.splitlines()[-12:]
    assert [float(line.split()[0]) for line in shown] == pytest.approx(out.logprobs, abs=2e-3)
    report = json.loads(gnomon(run, "-p", "ab", "--logprobs", "2", "--json", *MORE).stdout)["texts"][0]
    assert [[one["id"] for one in step] for step in report["top_logprobs"]] == [
        [i for i, _ in top] for top in out.top_logprobs
    ]


def test_constraints_are_options(run, model):
    options = "--repetition-penalty 1.2 --presence-penalty 0.3 --frequency-penalty 0.1 --no-repeat-ngram 3"
    constraints = Constraints(1.2, 0.3, 0.1, 3, ["e", "x y"], prefix="so ")
    shown = gnomon(
        run, "-q", "-p", "ab", *options.split(), "--bad-words", "e", "--bad-words", "x y", "--begin", "so ", *MORE
    ).stdout
    assert shown == texts(model, "ab", constraints=constraints)[0] + "\n"
    assert shown.startswith("so ")


def test_an_end_token_is_named_by_id_or_by_text(run, model):
    whole = generate(model, "ab", strategy=DRAWN, seed=0, max_new_tokens=12)[0]
    end = next(i for i in whole.ids[3:] if chr(i).isalpha())
    expected = texts(model, "ab", eos_ids=[end])[0] + "\n"
    assert len(expected) < len(whole.text)
    for name in (str(end), chr(end)):
        assert gnomon(run, "-q", "-p", "ab", "--eos", name, *MORE).stdout == expected


# ------------------------------------------------------------------ one text after another


def test_interactive_asks_for_one_text_after_another(run, model, translation, translator):
    shown = gnomon(run, "-i", "-q", *MORE, stdin="ab\n\nxy\n").stdout
    assert shown == texts(model, "ab")[0] + "\n" + texts(model, "xy")[0] + "\n"
    shown = gnomon(translation, "-i", "-q", *MORE, stdin="dos\n").stdout
    assert shown == generate(translator, source="dos", max_new_tokens=12)[0].text + "\n"


def test_ctrl_c_ends_a_generation_and_not_the_loop(run, model, monkeypatch):
    def interrupted(model, prompts, *, on_token, **settings):
        def watch(token):
            on_token(token)
            seen.append(token)
            if len(seen) == 5:
                raise KeyboardInterrupt

        return generate(model, prompts, on_token=watch, **settings)

    seen = []
    monkeypatch.setattr(gn.generate, "generate", interrupted)
    result = gnomon(run, "-i", "-q", *MORE, stdin="ab\nab\n")
    whole = texts(model, "ab")[0]
    first, second = result.stdout.splitlines()
    assert second == whole
    assert whole.startswith(first)
    assert len(first) < len(whole)
    assert result.exit_code == 0


def test_ctrl_c_at_the_prompt_ends_the_program(run, monkeypatch):
    def interrupt(prompt):
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupt)
    result = gnomon(run, "-i", *MORE)
    assert (result.exit_code, result.stdout) == (0, "")


def test_a_mistake_in_one_text_does_not_end_the_loop(tmp_path):
    model = gn.DecoderOnly(257, 8, 1, 1, position="learned", max_positions=8)
    folder = save_model(model, tmp_path / "short", gn.Tokenizer.bytes())
    result = gnomon(str(folder), "-i", "-q", stdin="a" * 20 + "\nab\n")
    assert "prompt 0 is too long" in result.stderr
    assert len(result.stdout.splitlines()) >= 1
    assert result.exit_code == 0


@pytest.mark.slow
def test_a_text_that_cannot_go_on_does_not_end_the_loop(run):
    """No token may come twice, and there are 257 of them: sooner or later none is left."""
    result = gnomon(
        run, "-i", "-q", "--no-repeat-ngram", "1", "--min-new-tokens", "400", "--max-new-tokens", "400", stdin="ab\nc\n"
    )
    assert result.exit_code == 0, result.output
    assert result.stderr.count("the constraints leave no token") == 2
    assert result.stderr.count("\n") - result.stderr.count("gnomon: error") <= 1  # a line each, and the last prompt's


# The command in a process of its own, whose terminal sends it the signals that keys mean.
AT_A_TERMINAL = """
import fcntl, runpy, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module("gnomon", run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
def test_a_person_at_a_terminal_stops_a_text_and_writes_the_next(run):
    import pty

    terminal, inside = pty.openpty()
    endless = ["--min-new-tokens", "100000", "--max-new-tokens", "100000"]
    command = [sys.executable, "-c", AT_A_TERMINAL, "generate", run, "-i", *endless]
    process = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, start_new_session=True)
    os.close(inside)
    shown, place = b"", 0

    def until(sign):
        """Read on, up to the end of the next such sign."""
        nonlocal shown, place
        while (found := shown.find(sign, place)) < 0:
            shown += os.read(terminal, 1 << 16)
        place = found + len(sign)

    try:
        until(b"> ")
        for text in (b"ab", b"xy"):
            os.write(terminal, text + b"\n")
            until(text + b"\r\n")
            until(b"e")  # it writes
            os.write(terminal, b"\x03")
            until(b"ended by interruption")
            until(b"> ")
        os.write(terminal, b"\x04")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    assert b"Traceback" not in shown


# ------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--width 3", "--width goes with --strategy beam or diverse-beam, not with the default"),
        ("--strategy greedy --temperature 1", "--temperature goes with --strategy sample or speculative or lookup"),
        ("--strategy beam --groups 2", "--groups goes with --strategy diverse-beam, not with beam"),
        ("--strategy beam --n-best 9", "n_best counts results, from 1 to the width 4"),
        ("--strategy beam -n 2", "for a beam take --n-best"),
        ("--strategy speculative", "needs --draft RUN"),
        ("--strategy bean", "beam"),
        ("--source dos", "this model has no encoder"),
        ("--no-repeat-ngram 0", "no_repeat_ngram counts tokens"),
        ("--eos xyz", "--eos 'xyz' is 3 tokens and not one"),
        ("-i", "--interactive asks for texts"),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_one_line(run, options, says):
    result = gnomon(run, "-p", "a", *options.split())
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "exit_code", "says"),
    [
        (["--temperature", "-1"], 2, "temperature must be at least 0, got -1.0"),
        (["--top-k", "0"], 2, "top_k must be at least 1"),
        (["--top-p", "2"], 2, "top_p must be between 0 and 1"),
        (["--stop", ""], 2, "a stop string must not be empty"),
        (["--max-new-tokens", "0"], 2, "--max-new-tokens"),
        (["--prompt-file", "x.txt"], 2, "give --prompt or --prompt-file, not both"),
        (["--tmperature", "1"], 2, "--temperature"),
    ],
)
def test_a_wrong_option_is_one_line_and_exits_2(run, arguments, exit_code, says):
    result = gnomon(run, "-p", "a", *arguments)
    assert result.exit_code == exit_code
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_what_cannot_be_read_is_one_line_and_exits_3(run, model, tmp_path):
    binary = tmp_path / "binary"
    binary.write_bytes(b"ab\xff\xfe")
    bare = gn.DecoderOnly(16, 8, 1, 1)
    for arguments, says in [
        ([str(tmp_path / "nowhere"), "-p", "a"], "nowhere"),
        ([run, "--prompt-file", str(tmp_path / "no.txt")], "No such file or directory"),
        ([run, "--prompt-file", str(binary)], "binary is not UTF-8 text: invalid start byte at byte 2"),
        ([str(save_model(bare, tmp_path / "bare")), "-p", "a"], "holds no tokenizer"),
    ]:
        result = gnomon(*arguments)
        assert result.exit_code == 3, result.output
        assert says in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_no_prompt_at_a_terminal_is_asked_for_rather_than_waited_for(monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    with pytest.raises(BadValue, match="there is no prompt: give --prompt TEXT or --prompt-file FILE"):
        _prompt(None, None)


def test_a_prompt_that_is_too_long_for_the_model_exits_2(tmp_path):
    model = gn.DecoderOnly(257, 8, 1, 1, position="learned", max_positions=8)
    folder = save_model(model, tmp_path / "short", gn.Tokenizer.bytes())
    result = gnomon(str(folder), "-p", "a" * 20)
    assert result.exit_code == 2
    assert "prompt 0 is too long, it has 20 tokens: learned positions hold 8 rows" in result.stderr
