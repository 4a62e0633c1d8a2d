"""Signing in to search, and out again."""

import re
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from muniment.ground import events
from muniment.repository.api.context import RepositoryContext
from muniment.repository.page import frame
from muniment.repository.page.asking import questions, sessions
from muniment.repository.page.asking.questions import PageQuestion
from muniment.repository.refusals import DirectoryUnavailable, NotSignedIn, UnknownRepository
from muniment.web.answers import browser
from muniment.web.requests import bodies

_LONGEST = 1000
_OURS = re.compile(r"(/saved|/objects/[0-9a-zA-Z]{1,40}(/content)?)?(\?[!-~]{0,8000})?")
_OUT = "You are signed out."
_NOT_ENDED = (
    "You are signed out in this browser. The directory could not be reached, so the sign-in itself ends when its token "
    "expires."
)


async def show_form(request: Request, context: RepositoryContext) -> Response:
    """Show the form to sign in with.

    Somebody who is signed in already is led there at once.
    """
    asked = bodies.query(request)
    to = _page_of_ours(asked.get("to", ""))
    try:
        await sessions.enter(request, context, await sessions.read(request, context), _asked(to).repository)
    except (NotSignedIn, UnknownRepository, DirectoryUnavailable):
        pass
    else:
        return frame.redirect(request, to)
    done = {"out": _OUT, "not-ended": _NOT_ENDED}.get(asked.get("done", ""), "")
    return await _shown(request, context, to, done=done)


@events.tells("sign-in")
async def sign_in(request: Request, context: RepositoryContext) -> Response:
    """Sign in to search."""
    form = await bodies.form(request)
    seal = await context.seal()
    frame.check_form(request, seal, form.get("csrf", ""), frame.form_cookies(request))
    to, name, password = _page_of_ours(form.get("to", "")), form.get("username", ""), form.get("password", "")
    wanted = _asked(to).repository
    try:
        if not name or not password or len(name) > _LONGEST or len(password) > _LONGEST:
            raise NotSignedIn("A name and a password are needed.")
        session = await sessions.sign_in(request, context, name, password, wanted)
    except NotSignedIn:
        return await _shown(request, context, to, sentence=browser.REFUSED, name=name[:_LONGEST])
    response = frame.redirect(request, to)
    frame.set_session_cookie(response, request, await sessions.seal(context, session))
    frame.remove_form_cookies(response, request)
    return response


@events.tells("sign-out")
async def sign_out(request: Request, context: RepositoryContext) -> Response:
    """Sign out."""
    form = await bodies.form(request)
    session = await sessions.read(request, context)
    await check_mark(request, context, form)
    event = events.begin(request.scope, "sign-out", how="search page")
    event.who = session.account
    ended = await sessions.end(context, session.tokens)
    response = frame.redirect(request, f"/sign-in?done={'out' if ended else 'not-ended'}")
    frame.set_session_cookie(response, request, "", gone=True)
    return response


async def check_mark(request: Request, context: RepositoryContext, form: Mapping[str, str]) -> None:
    """Raises Forged."""
    seal = await context.seal()
    frame.check_form(request, seal, form.get("csrf", ""), [frame.session_cookie(request)])


async def _shown(
    request: Request, context: RepositoryContext, to: str, *, sentence: str = "", name: str = "", done: str = ""
) -> Response:
    cookies = frame.form_cookies(request)
    bound_to = cookies[0] if cookies else browser.new_mark()
    seal = await context.seal()
    values = {
        "form_mark": frame.form_mark(seal, bound_to),
        "to": to,
        "words": _asked(to).words or "",
        "sentence": sentence,
        "name": name,
        "done": done,
        "partition": context.options.default_partition,
    }
    response = frame.draw(request, "sign_in.html", values, scripts=False)
    if not cookies:
        frame.set_form_cookie(response, request, bound_to)
    return response


def _asked(path: str) -> PageQuestion:
    return questions.read(bodies.pairs(path.partition("?")[2].encode(), "The page"))


def _page_of_ours(path: str) -> str:
    return path if _OURS.fullmatch(path) else ""
