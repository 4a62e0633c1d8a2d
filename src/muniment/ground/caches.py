"""What does a process remember, so that it need not work it out again?

An answer from the database is remembered under a mark. The transaction that changes what the answer depends on renews
the mark by a trigger.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Q = TypeVar("Q", bound=Hashable)
A = TypeVar("A")


class Cache(Generic[Q, A]):
    """Any thread may use it.

    The remembered answers weigh at most ``limit`` together; without a ``weight`` an answer weighs 1. New answers
    replace the oldest. An answer that weighs more than the limit is not remembered. An answer must not be None.

    It is recalled under the same mark only.
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
        """Remember an answer, and return it. Its mark must come from the snapshot in which it was worked out."""
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
