"""What does a process remember, so that it need not work it out again?

An answer from the database has a mark, which a trigger renews with whatever the answer depends on.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Q = TypeVar("Q", bound=Hashable)
A = TypeVar("A")


class Cache(Generic[Q, A]):
    """Any thread may use it. An answer must not be None, and is recalled under its own mark only.

    Together the answers weigh ``limit`` at most, each 1 by default: new ones replace the oldest, and a heavier one is
    not remembered.
    """

    def __init__(self, limit: int) -> None:
        self._answers: OrderedDict[Q, tuple[Hashable, A, int]] = OrderedDict()
        self._limit = limit
        self._room = limit
        self._changing = threading.Lock()

    def recall(self, question: Q, mark: Hashable = None) -> A | None:
        remembered = self._answers.get(question)
        return None if remembered is None or remembered[0] != mark else remembered[1]

    def keep(self, question: Q, answer: A, weight: int = 1, mark: Hashable = None) -> A:
        """The mark must come from the answer's snapshot."""
        with self._changing:
            former = self._answers.pop(question, None)
            self._room += 0 if former is None else former[2]
            if weight <= self._limit:
                self._answers[question] = mark, answer, weight
                self._room -= weight
            while self._room < 0:
                _, (_, _, freed_weight) = self._answers.popitem(last=False)
                self._room += freed_weight
        return answer

    def answer(self, question: Q, work: Callable[[], A], weight: int = 1) -> A:
        remembered = self.recall(question)
        return self.keep(question, work(), weight) if remembered is None else remembered
