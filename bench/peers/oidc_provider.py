"""node-oidc-provider: one Node process that keeps everything in memory."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers import Missing, installed
from bench.peers.tokens import TokenServer, basic
from bench.processes import away, free_port, run, started

VERSION = "9.13.3"

_SERVER = """
import Provider from 'oidc-provider';
const provider = new Provider(`http://127.0.0.1:${process.env.PORT}`, {
  clients: [{ client_id: 'bench', client_secret: 'bench-secret',
    grant_types: ['client_credentials', 'refresh_token', 'authorization_code'],
    redirect_uris: ['https://127.0.0.1/cb'], response_types: ['code'],
    token_endpoint_auth_method: 'client_secret_basic' }],
  scopes: ['openid', 'offline_access', 'read'],
  features: { clientCredentials: { enabled: true }, introspection: { enabled: true, allowedPolicy: () => true },
    devInteractions: { enabled: false } },
  pkce: { required: () => false }, rotateRefreshToken: true, issueRefreshToken: async () => true,
  ttl: { ClientCredentials: 7200, AccessToken: 7200, RefreshToken: 7200, Grant: 7200 },
  findAccount: async (ctx, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
});
// It has no password grant: refresh tokens to begin with come straight from its own models.
provider.use(async (ctx, next) => {
  if (ctx.path === '/up') { ctx.body = 'up'; return; }
  if (ctx.path !== '/seed') return next();
  const made = [], client = await provider.Client.find('bench');
  for (let i = 0; i < Number(ctx.query.n || 1); i++) {
    const grant = new provider.Grant({ accountId: 'alice', clientId: 'bench' });
    grant.addOIDCScope('offline_access read');
    const grantId = await grant.save();
    const token = new provider.RefreshToken({ accountId: 'alice', client, grantId, gty: 'authorization_code',
      scope: 'offline_access read', iiat: Math.floor(Date.now() / 1000), rotations: 0 });
    made.push(await token.save());
  }
  ctx.body = JSON.stringify(made);
});
provider.listen(Number(process.env.PORT), '127.0.0.1');
"""


@contextmanager
def serving(scratch: Path) -> Iterator[TokenServer]:
    """Install and start it. Raises Missing."""
    if away("npm") or away("node"):
        raise Missing("node-oidc-provider needs node and npm")
    home = installed(f"oidc-provider-{VERSION}", _install)
    (home / "server.mjs").write_text(_SERVER)
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    environment = {"PORT": str(port), "NODE_ENV": "production"}
    command = ["node", "server.mjs"]
    with started(command, scratch / "oidc.log", ready=f"{base}/up", environment=environment, cwd=home) as program:
        node = run(["node", "--version"]).strip()
        yield TokenServer(
            f"node-oidc-provider {VERSION}, in memory",
            f"Node {node}, one process, opaque tokens",
            [program],
            f"{base}/token",
            f"{base}/token/introspection",
            basic("bench", "bench-secret"),
            {"grant_type": "client_credentials", "scope": "read"},
            seed=f"{base}/seed?n=",
            scope="read",
        )


def _install(folder: Path) -> None:
    (folder / "package.json").write_text(json.dumps({"private": True, "type": "module"}))
    run(["npm", "install", "--no-audit", "--no-fund", f"oidc-provider@{VERSION}"], cwd=folder)
