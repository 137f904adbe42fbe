"""The first Ctrl-C asks, the second one ends, and afterwards Ctrl-C is what it was."""

import os
import signal
import threading

import pytest

from gnomon.train.interrupt import ctrl_c_asks


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_asks_and_the_second_ends(capsys):
    with ctrl_c_asks("wait") as asked:
        assert not asked()
        press()
        assert asked()
        assert capsys.readouterr().err == "\nwait\n"
        with pytest.raises(KeyboardInterrupt):
            press()


def test_afterwards_ctrl_c_is_what_it_was():
    before = signal.getsignal(signal.SIGINT)
    with ctrl_c_asks("wait"):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        press()


def test_in_another_thread_nothing_is_asked():
    answers = []

    def work():
        with ctrl_c_asks("wait") as asked:
            answers.append(asked())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert answers == [False]
