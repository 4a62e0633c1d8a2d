"""A web application whose people sign in at the directory, and search a repository. Usage: web_application.py

The environment tells it ISSUER, CLIENT_ID, CLIENT_SECRET, REPOSITORY (its address) and CA_FILE. docs/sign-people-in.md
goes through it.
"""

import os
import secrets
import ssl
from html import escape

import uvicorn
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.integrations.starlette_client import OAuth, OAuthError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.routing import Route

ISSUER, REPOSITORY = os.environ["ISSUER"], os.environ["REPOSITORY"]
CLIENT_ID, CLIENT_SECRET = os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"]
PORT = int(os.environ.get("PORT", "5000"))
TRUST = ssl.create_default_context(cafile=os.environ["CA_FILE"])

# The tokens stay on the server, and the browser has the session's id. Several processes need a common place for them.
people = {}


async def keep(token, refresh_token=None, **_):
    """Keep an access token that was refreshed."""
    for person in people.values():
        if person["token"].get("refresh_token") == refresh_token:
            person["token"] = token


oauth = OAuth(update_token=keep)
directory = oauth.register(
    "directory",
    client_id=CLIENT_ID,
    client_secret=CLIENT_SECRET,
    server_metadata_url=f"{ISSUER}/.well-known/openid-configuration",
    client_kwargs={"scope": "openid profile", "code_challenge_method": "S256", "verify": TRUST},
)


async def sign_in(request):
    """Send the browser to the directory: with a state, a nonce and a challenge (PKCE), which the session remembers."""
    return await directory.authorize_redirect(request, request.url_for("signed_in"), resource=REPOSITORY)


async def signed_in(request):
    """Take the code that the browser brings back, and redeem it. Authlib checks the state and the id_token."""
    try:
        token = await directory.authorize_access_token(request)
    except OAuthError as refused:
        return page(f"<p>Not signed in: {escape(refused.description or refused.error)}</p>{SIGN_IN}", 403)
    told = await directory.userinfo(token=token)
    request.session["id"] = secrets.token_urlsafe()
    people[request.session["id"]] = {"name": told["name"], "token": token}
    return RedirectResponse("/", 303)


async def front(request):
    """Search the repository as the person. It decides at each request what they may see, and whether they may."""
    person = people.get(request.session.get("id"))
    if person is None:
        return page(SIGN_IN)
    found, q = "", request.query_params.get("q", "")
    if q:
        try:
            answer = await directory.get(f"{REPOSITORY}/search", params={"q": q}, token=person["token"])
        except OAuthError:  # The access token had expired, and could not be refreshed.
            return await shut_out(request)
        if answer.status_code == 401:
            return await shut_out(request)
        answer.raise_for_status()
        titles = [escape(entry["title"]) for entry in answer.json()["entries"]]
        found = f"<p>{len(titles)} found</p><ul>" + "".join(f"<li>{title}</li>" for title in titles) + "</ul>"
    return page(f"<p>You are {escape(person['name'])}.</p>{SEARCH}{found}{SIGN_OUT}")


async def sign_out(request):
    """End the sign-in, by the person's wish."""
    await end(request)
    return RedirectResponse("/", 303)


async def shut_out(request):
    """End the sign-in, because the directory takes its tokens no more."""
    await end(request)
    return page(f"<p>Your sign-in has ended.</p>{SIGN_IN}", 401)


async def end(request):
    """Forget the tokens, and end their grant, so that nobody else can use them either (RFC 7009)."""
    person = people.pop(request.session.pop("id", None), None)
    if person is not None:
        metadata = await directory.load_server_metadata()
        async with AsyncOAuth2Client(CLIENT_ID, CLIENT_SECRET, verify=TRUST) as client:
            await client.revoke_token(metadata["revocation_endpoint"], person["token"]["refresh_token"])


def page(body, status=200):
    """Write a page."""
    style = "<style>body { font: 18px sans-serif; max-width: 32em; margin: 4em auto }</style>"
    return HTMLResponse(f"<!doctype html><title>Letters</title>{style}<h1>Letters</h1>{body}", status)


SIGN_IN = '<p><a href="/sign-in">Sign in</a></p>'
SIGN_OUT = '<form method="post" action="/sign-out"><button>Sign out</button></form>'
SEARCH = '<form><label>Search for <input name="q"></label> <button>Search</button></form>'

# Sessions end with this process. Behind https, say https_only=True.
app = Starlette(
    routes=[
        Route("/", front),
        Route("/sign-in", sign_in),
        Route("/signed-in", signed_in),
        Route("/sign-out", sign_out, methods=["POST"]),
    ],
    middleware=[Middleware(SessionMiddleware, secret_key=secrets.token_urlsafe(), same_site="lax")],
)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=PORT)
