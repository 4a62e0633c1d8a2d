"""Ask the directory in this process who calls a repository. Answers are the same as over HTTP.

Sources: given 2.5, 2.6 (tokeninfo); docs/interface.md, ours 10 (tickets, HTTP Basic).
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

import msgspec
import structlog
from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.directory.api import oauth
from muniment.directory.console import frame
from muniment.directory.context import Directory
from muniment.directory.entries import identities
from muniment.directory.entries import names as directory_names
from muniment.directory.oauth import revocation, tokeninfo
from muniment.directory.oauth.access import AccessCache
from muniment.directory.oauth.token_requests import TokenRequest
from muniment.directory.options import DirectoryNames, DirectoryOptions
from muniment.directory.refusals import InvalidClient, InvalidScope, SignInRefused, UnauthorizedClient
from muniment.directory.refusals import NotSignedIn as NoTicket
from muniment.directory.version_stamps import BOTH, VersionStamps
from muniment.ground.clock import Instant
from muniment.repository.api.callers.callers import Ask, Callers, PageSignIn, Tickets, in_this_process
from muniment.repository.api.callers.credentials import TicketNames
from muniment.repository.api.callers.pairs import AccessToken, EndGrant, Pairs, PairSignIn, SignIn
from muniment.repository.api.callers.tokeninfo import Attributes, refusal_of
from muniment.repository.options import RepositoryOptions
from muniment.repository.refusals import DirectoryUnavailable, NotSignedIn
from muniment.repository.store.permissions.name_keys import Identify
from muniment.web.answers.responses import find_code

_Verify = Callable[[Connection, DirectoryOptions, AccessCache, str, str, Instant], tokeninfo.TicketInfo]

log = structlog.get_logger("muniment.directory_callers")


def callers(directory: Directory, options: RepositoryOptions, attributes: Attributes) -> Callers:
    names, transactions = directory.options.names, directory.transactions
    off_loop = None if transactions.database.dialect == "sqlite" else transactions.off_loop
    pairs = None
    if options.basic_client:
        sign_in = password_sign_in(directory, options.basic_client, options.basic_secret, "HTTP Basic")
        pairs = Pairs(sign_in, grant_end(directory), seconds=options.basic_seconds, most=options.basic_pairs)
    page = None
    if options.offers_search_page:
        sign_in = password_sign_in(directory, options.search_page_client, options.search_page_secret, "search page")
        elsewhere = in_this_process(_user_question(directory, tokeninfo.verify_elsewhere), off_loop)
        page = PageSignIn(sign_in, grant_end(directory), elsewhere)

    async def csrf(ticket: str) -> str:
        # Whoever reads this token, such as a page of another origin that may read the repository's answers, cannot
        # send the console's forms with it.
        return await transactions.read(frame.csrf, f"repository {ticket}")

    ticket_question = _user_question(directory, tokeninfo.verify_ticket)
    ticket_names = TicketNames(frame.ticket_header(names), lambda request: frame.cookie(request, names, "ticket"))
    return Callers.in_process(
        token_question(directory),
        options.administrators,
        names.dn_suffix,
        attributes,
        off_loop,
        identification(transactions.database, names),
        tickets=Tickets(ticket_names, in_this_process(ticket_question, off_loop), csrf),
        pairs=pairs,
        page=page,
    )


def identification(database: Database, names: DirectoryNames) -> Identify:

    def identify(ids: Collection[str]) -> Mapping[str, str]:
        with database.read() as cx:
            return identities.identities_of(cx, names, ids)

    return identify


def token_question(directory: Directory) -> Ask:
    """Ask for the document that the tokeninfo address would send, or raise what a repository would derive from its
    refusal (``callers.tokeninfo.refusal_of``).
    """

    def ask(token: str, resource_id: str) -> bytes:
        with _address_refusals():
            now_marks = VersionStamps(*directory.transactions.glance_at_once(BOTH))
            question = f"{resource_id} {token}".encode("utf-8", "surrogatepass")
            remembered = tokeninfo.recall(
                directory.answers, now_marks, tokeninfo.question_digest(question), directory.clock()
            )
            if remembered is not None:
                return remembered
            with directory.transactions.database.read() as cx:
                return tokeninfo.tokeninfo_answer(
                    cx,
                    directory.options,
                    directory.memory,
                    directory.answers,
                    question,
                    token,
                    resource_id,
                    directory.clock(),
                )

    return ask


def _user_question(directory: Directory, verify: _Verify) -> Ask:
    """The answer is a ``TicketInfo`` as JSON. Refuses as ``token_question`` does."""

    def ask(credential: str, resource_id: str) -> bytes:
        now = directory.clock()
        with _address_refusals(), directory.transactions.database.read() as cx:
            info = verify(cx, directory.options, directory.memory, credential, resource_id, now)
        return msgspec.json.encode(info)

    return ask


def password_sign_in(directory: Directory, client_id: str, secret: str, how: str) -> SignIn:
    """``how`` is a field of the security event."""

    async def sign_in(attempt: PairSignIn) -> AccessToken:
        request = TokenRequest(
            "password",
            client_id,
            secret or None,
            attempt.pair.account,
            {
                "username": attempt.pair.account,
                "password": attempt.pair.password,
                "scope": directory_names.scope(attempt.resource_id),
            },
            attempt.address,
            issuer=directory.issuer,
        )
        event = oauth.begin_sign_in(attempt.scope, request, how)
        assert event is not None  # noqa: S101 - the password grant has an account
        event.result = "failed"
        try:
            issued = await oauth.issue(directory, request, attempt.scope, event)
            event.result = "done"
        except SignInRefused as refusal:
            event.result = "refused"
            raise NotSignedIn(refusal.sentence) from refusal
        except (InvalidClient, InvalidScope, UnauthorizedClient) as refusal:
            log.error(  # noqa: TRY400 - a wrong setting, not a bug
                "the directory refuses to sign callers in",
                client=client_id,
                how=how,
                reason=refusal.sentence,
                to_do="make this client with 'muniment client add', or check its secret and the repository's resource",
            )
            raise DirectoryUnavailable("The directory does not sign callers in for this repository.") from refusal
        finally:
            event.resource = attempt.repository
        return AccessToken(issued.access_token, issued.expires_in)

    return sign_in


def grant_end(directory: Directory) -> EndGrant:

    async def end(token: str) -> None:
        names = directory.options.names
        await directory.transactions.write(revocation.revoke, names, token, directory.clock())

    return end


@contextmanager
def _address_refusals() -> Iterator[None]:
    """Raise what a repository would derive from the answers over HTTP."""
    try:
        yield
    except NoTicket as refusal:
        raise NotSignedIn("The ticket has expired or was ended.") from refusal
    except tuple(oauth.TOKENINFO) as refusal:
        raise refusal_of(find_code(refusal, oauth.TOKENINFO).status) from refusal
