"""How much memory may answers take that their callers have not read yet?"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from starlette.types import Scope

from muniment.ground.refusals import Overloaded

LONG = 65_536

UNSENT = "muniment.unsent"

CALLER = "muniment.caller"
"""The user's folded name in a request's scope, once known."""

_SHARE = 4

_RETRY_SECONDS = 5


@dataclass(eq=False, slots=True)
class _Answer:
    caller: str
    size: int
    timeout: asyncio.Timeout


class Unsent:
    """The long answers of one worker, on its event loop (decision 0089).

    A caller may have one, or several with a quarter of ``most`` bytes together. At ``most``, a further one replaces the
    oldest of the caller who has most, if more than the new one's.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._answers: dict[_Answer, None] = {}
        self._sizes: Counter[str] = Counter()

    def hold(self, scope: Scope, size: int) -> AbstractAsyncContextManager[None]:
        """Raises Overloaded without room, and in the block when its answer has to make room."""
        caller = scope.get(CALLER) or (scope["client"][0] if scope.get("client") else "")
        held = self._sizes[caller]
        if held and held + size > self._most // _SHARE:
            sentence = "You have not read the long answers that you asked for: read them before you ask for more."
            raise Overloaded(sentence, _RETRY_SECONDS)
        while self._answers and self._sizes.total() + size > self._most:
            largest, _ = self._sizes.most_common(1)[0]
            if self._sizes[largest] <= held + size:
                raise Overloaded("Too many long answers are being read; try again in a moment.", _RETRY_SECONDS)
            self._cut(next(answer for answer in self._answers if answer.caller == largest))
        return self._holding(_Answer(caller, size, asyncio.timeout(None)))

    @asynccontextmanager
    async def _holding(self, answer: _Answer) -> AsyncIterator[None]:
        self._answers[answer] = None
        self._sizes[answer.caller] += answer.size
        try:
            async with answer.timeout:
                yield
        except TimeoutError:
            raise Overloaded("The answer made room for those of other callers.", _RETRY_SECONDS) from None
        finally:
            self._remove(answer)

    def _cut(self, answer: _Answer) -> None:
        self._remove(answer)
        answer.timeout.reschedule(asyncio.get_running_loop().time())

    def _remove(self, answer: _Answer) -> None:
        if answer in self._answers:
            del self._answers[answer]
            self._sizes[answer.caller] -= answer.size
            if not self._sizes[answer.caller]:
                del self._sizes[answer.caller]
