"""The first Ctrl-C asks, the second one ends, and afterwards Ctrl-C is what it was."""

import os
import signal
import threading

import pytest

from gnomon.errors import Terminated
from gnomon.train.interrupt import interrupt_on_signals


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_asks_and_the_second_ends(capsys):
    with interrupt_on_signals("wait") as asked:
        assert not asked()
        press()
        assert asked()
        assert type(asked()) is KeyboardInterrupt
        assert capsys.readouterr().err == "\nCtrl-C: wait\n"
        with pytest.raises(KeyboardInterrupt):
            press()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_other_ends_ask_like_ctrl_c_and_the_second_does_what_it_did(capsys, number):
    """Schedulers send SIGTERM; a terminal that is closed sends SIGHUP."""
    ended = []
    before = signal.signal(number, lambda number, frame: ended.append(number))
    try:
        with interrupt_on_signals("wait") as asked:
            os.kill(os.getpid(), number)
            assert type(asked()) is Terminated
            assert asked().signal is number
            assert capsys.readouterr().err == f"\n{number.name}: wait\n"
            os.kill(os.getpid(), number)
            assert ended == [number]
    finally:
        assert signal.signal(number, before) is not before


def test_a_signal_that_is_ignored_stays_ignored():
    """nohup ignores SIGHUP so that a run outlives its terminal, and shells SIGINT for what runs in the background."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGINT)}
    try:
        with interrupt_on_signals("wait") as asked:
            for number in before:
                os.kill(os.getpid(), number)
            assert asked() is None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_afterwards_ctrl_c_is_what_it_was():
    before = signal.getsignal(signal.SIGINT)
    with interrupt_on_signals("wait"):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        press()


def test_in_another_thread_nothing_is_asked():
    answers = []

    def work():
        with interrupt_on_signals("wait") as asked:
            answers.append(asked())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert answers == [None]
