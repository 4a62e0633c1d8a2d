"""Who is signed in to search? The browser carries sealed access tokens in one cookie; the repository keeps none."""

from collections.abc import Mapping, Sequence

import msgspec
from starlette.requests import Request

from muniment.repository.api.callers.callers import Bearer, PageSignIn
from muniment.repository.api.callers.credentials import Pair, account_of
from muniment.repository.api.callers.pairs import PairSignIn
from muniment.repository.api.context import Caller, RepositoryContext
from muniment.repository.keys import BadSeal
from muniment.repository.page import frame
from muniment.repository.page.asking import questions
from muniment.repository.page.asking.questions import PageQuestion
from muniment.repository.refusals import DirectoryUnavailable, NotSignedIn
from muniment.repository.store import repositories
from muniment.repository.store.repositories import Repository
from muniment.web.requests import bodies
from muniment.web.requests.transport import caller_address

_SESSION = "search page session"
_OPENED = "muniment.opened"
_REFUSED = 3
"""When so many resources have refused a password, and none accepted it, no further one is tried."""

_MOST_GUARDS = 12
"""The cookie has room for so many tokens."""

_MOST_LOOKED_AT = 30
"""Somebody's role is looked up in so many resources, besides that of the repository they name."""


class PageSession(msgspec.Struct, frozen=True):
    """The tokens go by the resource's identifier."""

    account: str
    tokens: dict[str, str]


_decoder = msgspec.json.Decoder(PageSession)


async def sign_in(
    request: Request, context: RepositoryContext, name: str, password: str, repository_name: str = ""
) -> PageSession:
    """Sign in to at most ``_MOST_GUARDS`` resources that guard repositories and admit this person.

    That of ``repository_name`` is first if the person has a role there; those without a role are last, and only if none
    has accepted the password. So a wrong password is checked equally often, whatever roles a person has; after three
    refusals it is not tried again.

    Raises NotSignedIn, DirectoryUnavailable, Overloaded.
    """
    page = _page_of(context)
    pair = Pair(account_of(name.strip(), context.options.default_partition), password)
    guarded = await context.transactions.read(repositories.first_of_each_guard, _MOST_LOOKED_AT)
    if repository_name:
        guarded = await context.transactions.read(repositories.by_names, [repository_name]) + guarded
    likely, unlikely = dict[str, Repository](), dict[str, Repository]()
    for repository in guarded:
        guard = repository.resource_id
        if guard and guard not in likely and guard not in unlikely:
            admits = await context.may_enter(guard, pair.account)
            (likely if admits else unlikely)[guard] = repository
    tokens, refused, trouble = dict[str, str](), list[NotSignedIn](), None
    for guard, repository in (likely | unlikely).items():
        is_done = guard in unlikely or len(tokens) == _MOST_GUARDS
        if is_done if tokens else len(refused) == _REFUSED:
            break
        attempt = PairSignIn(pair, guard, repository.name, caller_address(request), request.scope)
        try:
            tokens[guard] = (await page.sign_in(attempt)).text
        except NotSignedIn as refusal:
            refused.append(refusal)
        except DirectoryUnavailable as failure:
            trouble = failure
    if tokens:
        return PageSession(pair.account, tokens)
    raise next(iter(refused), None) or trouble or NotSignedIn("There is no repository to search yet.")


async def seal(context: RepositoryContext, session: PageSession) -> str:
    seal = await context.seal()
    return seal.seal(msgspec.json.encode(session), _SESSION)


async def read(request: Request, context: RepositoryContext) -> PageSession:
    """Raises NotSignedIn."""
    text = frame.session_cookie(request)
    if text:
        seal = await context.seal()
        try:
            return _decoder.decode(seal.open(text, _SESSION))
        except (BadSeal, msgspec.DecodeError):
            pass
    raise NotSignedIn("Nobody is signed in.")


async def names(request: Request, context: RepositoryContext, session: PageSession, entered: str) -> list[str]:
    """List ``max_searched_repositories`` names that a sign-in opens now, and ``entered`` if it is not among them."""
    listed = [one.name for one, _ in await _open(request, context, session)]
    return listed if entered in listed else [*listed, entered]


async def enter(request: Request, context: RepositoryContext, session: PageSession, name: str = "") -> Caller:
    """Enter a repository, or the first that the sign-in opens.

    Raises NotSignedIn if it has ended or opens none, UnknownRepository if it opens others, and DirectoryUnavailable.
    """
    named = await context.transactions.read(repositories.by_names, [name]) if name else []
    chosen = next((one for one in named if one.resource_id), None)
    bearer = None if chosen is None else await _bearer(context, session, chosen.resource_id)
    if chosen is None or bearer is None:
        opened = await _open(request, context, session)
        if not opened:
            raise NotSignedIn("The sign-in opens no repository any more.")
        chosen, bearer = next((each for each in opened if name in ("", each[0].name)), (None, None))
        if chosen is None or bearer is None:
            raise repositories.unknown(name)
    seal = await context.seal()
    caller = Caller(context, chosen, seal, bearer, request)
    await caller.prove()
    return caller


async def begin(request: Request, context: RepositoryContext) -> tuple[PageQuestion, PageSession, Caller]:
    """Raises Malformed, and what ``read`` and ``enter`` raise."""
    asked = questions.read(bodies.pairs(request.scope["query_string"], "The address"))
    session = await read(request, context)
    return asked, session, await enter(request, context, session, asked.repository)


async def end(context: RepositoryContext, tokens: Mapping[str, str]) -> bool:
    """Return False if the directory could not be reached for one of them."""
    page, done = _page_of(context), True
    for token in tokens.values():
        try:
            await page.end(token)
        except DirectoryUnavailable:
            done = False
    return done


async def _open(
    request: Request, context: RepositoryContext, session: PageSession
) -> Sequence[tuple[Repository, Bearer]]:
    """Look once for each request."""
    found: Sequence[tuple[Repository, Bearer]] | None = request.scope.get(_OPENED)
    if found is not None:
        return found
    guards = dict.fromkeys(session.tokens)
    if _page_of(context).elsewhere is not None:
        first = await context.transactions.read(repositories.first_of_each_guard, _MOST_LOOKED_AT)
        guards |= dict.fromkeys(one.resource_id for one in first)
    bearers, trouble = dict[str, Bearer](), None
    for guard in guards:
        try:
            bearer = await _bearer(context, session, guard)
        except DirectoryUnavailable as failure:
            trouble = failure
        else:
            bearers |= {} if bearer is None else {guard: bearer}
    if trouble is not None and not bearers:
        raise trouble
    most = context.options.max_searched_repositories
    opened = await context.transactions.read(repositories.guarded_by_any, list(bearers), most)
    found = request.scope[_OPENED] = [(one, bearers[one.resource_id]) for one in opened]
    return found


async def _bearer(context: RepositoryContext, session: PageSession, guard: str) -> Bearer | None:
    try:
        return await context.callers.identify_page(session.tokens, guard)
    except NotSignedIn:
        return None


def _page_of(context: RepositoryContext) -> PageSignIn:
    if context.callers.page is None:
        raise DirectoryUnavailable("No directory signs people in for this page.")
    return context.callers.page
