"""django-oauth-toolkit under gunicorn, on a PostgreSQL of ours."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers import installed
from bench.peers.tokens import TokenServer, basic
from bench.processes import Program, free_port, run, started

VERSION = "3.4.1"
_PACKAGES = (f"django-oauth-toolkit=={VERSION}", "django==5.2.19", "gunicorn==27.0.1", "psycopg[binary]==3.3.9")

_SITE = """
import os
import django
from django.conf import settings
host, port, name = os.environ["SITE_DATABASE"].split(",")
settings.configure(
    SECRET_KEY="x", DEBUG=False, ALLOWED_HOSTS=["*"], ROOT_URLCONF="site1", USE_TZ=True, MIDDLEWARE=[],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"],
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": name, "USER": "postgres",
                           "PASSWORD": "x", "HOST": host, "PORT": port, "CONN_MAX_AGE": 600}},
    OAUTH2_PROVIDER={"SCOPES": {"read": "r", "introspection": "i"}, "ROTATE_REFRESH_TOKEN": True,
                     "ACCESS_TOKEN_EXPIRE_SECONDS": 7200},
)
django.setup()
from django.http import HttpResponse
from django.urls import include, path
urlpatterns = [path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
               path("up", lambda request: HttpResponse("up"))]
from django.core.wsgi import get_wsgi_application
application = get_wsgi_application()
if __name__ == "__main__":
    from django.core.management import call_command
    call_command("migrate", verbosity=0)
    from django.contrib.auth.models import User
    from oauth2_provider.models import Application
    user, _ = User.objects.get_or_create(username="alice")
    user.set_password("Correct-Horse-9")
    user.save()
    # Its default hash of the client's secret costs a second a request: here the secret is stored as it is.
    Application.objects.create(client_id="bench", client_secret="bench-secret", hash_client_secret=False, user=user,
                               name="bench", client_type="confidential", authorization_grant_type="password")
"""


@contextmanager
def serving(scratch: Path, database: tuple[str, int, str], postgres: Program) -> Iterator[TokenServer]:
    """Install and start it on the database (host, port, name) with a client and a user. Raises Missing."""
    home = installed(f"django-oauth-toolkit-{VERSION}", _install)
    (scratch / "site1.py").write_text(_SITE)
    python = home / "bin" / "python"
    environment = {"SITE_DATABASE": ",".join(map(str, database))}
    run([python, "site1.py"], cwd=scratch, environment=environment)
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    command: list[str | Path] = [
        python,
        "-m",
        "gunicorn",
        "-w",
        "2",
        "-k",
        "gthread",
        "--threads",
        "4",
        "--keep-alive",
        "60",
    ]
    command += ["-b", f"127.0.0.1:{port}", "site1:application"]
    log = scratch / "gunicorn.log"
    with started(command, log, ready=f"{base}/up", environment=environment, cwd=scratch) as program:
        sign_in = {"grant_type": "password", "username": "alice", "password": "Correct-Horse-9", "scope": "read"}
        yield TokenServer(
            f"django-oauth-toolkit {VERSION}",
            "Django 5.2.19, gunicorn 27.0.1 (2 processes of 4 threads), PostgreSQL, client secret not hashed",
            [program, postgres],
            f"{base}/o/token/",
            f"{base}/o/introspect/",
            basic("bench", "bench-secret"),
            {**sign_in, "scope": "read introspection"},
        )


def _install(folder: Path) -> None:
    run([sys.executable, "-m", "venv", folder])
    pip: list[str | Path] = [
        folder / "bin" / "python",
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--quiet",
        "--no-input",
        "install",
    ]
    run([*pip, *_PACKAGES], environment={"PIP_ROOT_USER_ACTION": "ignore"})
