"""The first Ctrl-C asks, the second one ends, and afterwards Ctrl-C is what it was."""

import os
import signal
import threading

import pytest

from gnomon.errors import Terminated
from gnomon.train.interrupt import signals_ask


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_asks_and_the_second_ends(capsys):
    with signals_ask("wait") as asked:
        assert not asked()
        press()
        assert asked()
        assert type(asked()) is KeyboardInterrupt
        assert capsys.readouterr().err == "\nCtrl-C: wait\n"
        with pytest.raises(KeyboardInterrupt):
            press()


def test_a_sigterm_asks_like_ctrl_c_and_the_second_does_what_it_did(capsys):
    ended = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    try:
        with signals_ask("wait") as asked:
            os.kill(os.getpid(), signal.SIGTERM)
            assert type(asked()) is Terminated
            assert capsys.readouterr().err == "\nSIGTERM: wait\n"
            os.kill(os.getpid(), signal.SIGTERM)
            assert ended == [signal.SIGTERM]
    finally:
        assert signal.signal(signal.SIGTERM, before) is not before


def test_afterwards_ctrl_c_is_what_it_was():
    before = signal.getsignal(signal.SIGINT)
    with signals_ask("wait"):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        press()


def test_in_another_thread_nothing_is_asked():
    answers = []

    def work():
        with signals_ask("wait") as asked:
            answers.append(asked())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert answers == [None]
