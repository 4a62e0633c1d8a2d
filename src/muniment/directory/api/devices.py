"""Where a device begins (RFC 8628 3.1); its user goes on at ``console/device``."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment.directory.api import client_authentication, spelling
from muniment.directory.console import frame
from muniment.directory.context import Directory
from muniment.directory.oauth import device_authorization, device_codes
from muniment.ground import events
from muniment.web.requests import bodies
from muniment.web.requests.transport import caller_address


class DeviceAuthorization(msgspec.Struct, frozen=True):
    """What a device shows its user, and with which code it then asks for its tokens (RFC 8628 3.2)."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int


@events.tells()
async def begin(request: Request, directory: Directory) -> Response:
    """Give a device its codes."""
    form = await bodies.form(request)
    parameters = {name: value for name, value in form.items() if value}
    address = caller_address(request)
    client = await client_authentication.identify(directory, client_authentication.read(request, parameters), address)
    started = await directory.transactions.write(
        device_authorization.start,
        *(directory.options, client, parameters, directory.dependencies.guard_at, address, directory.clock()),
    )
    page = f"{directory.issuer}{frame.DEVICE}"
    document = DeviceAuthorization(
        started.device_code,
        started.user_code,
        page,
        f"{page}?user_code={started.user_code}",
        device_codes.LIFE_SECONDS,
        device_codes.INTERVAL_SECONDS,
    )
    return Response(msgspec.json.encode(document), headers=spelling.NEVER_STORED, media_type="application/json")
