"""Answers that are kept: made once for all readers, again after a change, and never while another thread makes one."""

import threading
from concurrent.futures import ThreadPoolExecutor

from pydantic import BaseModel

from evalake.server.viewer.access import Answers


class Answer(BaseModel):
    number: int


def test_an_answer_is_made_again_once_where_its_state_changed_and_readers_do_not_wait() -> None:
    answers, made = Answers(), list[int]()
    begun, go_on = threading.Event(), threading.Event()

    def make(number: int, waits: bool = False) -> Answer:
        if waits:
            begun.set()
            go_on.wait()
        made.append(number)
        return Answer(number=number)

    assert [answers.answer("q", 1, lambda: make(1)).body for _ in range(2)] == [b'{"number":1}'] * 2
    with ThreadPoolExecutor(1) as pool:
        newer = pool.submit(answers.answer, "q", 2, lambda: make(2, waits=True))
        begun.wait()
        older = answers.answer("q", 2, lambda: make(3)).body
        go_on.set()
        assert newer.result().body == b'{"number":2}'
    assert older == b'{"number":1}'
    assert made == [1, 2]
