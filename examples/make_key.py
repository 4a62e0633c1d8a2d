"""Make a key by which a service authenticates. Usage: make_key.py NAME; it writes NAME.key and NAME.jwks."""

import json
import os
import sys
from pathlib import Path

from joserfc.jwk import ECKey

name = sys.argv[1]
key = ECKey.generate_key("P-256", {"kid": f"{name}-1", "alg": "ES256", "use": "sig"})
with os.fdopen(os.open(f"{name}.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
    json.dump(key.as_dict(private=True), file)
Path(f"{name}.jwks").write_text(json.dumps({"keys": [key.as_dict(private=False)]}))
