"""The document of all addresses is the running application's own: nothing missing, nothing invented."""

import pytest
import schemathesis
from schemathesis.core.result import Ok
from starlette.routing import Route

from tests.campaign import document
from tests.scenes import Loop, Site


def test_every_route_and_method_of_the_running_application_is_in_it(site: Site, loop: Loop) -> None:
    written, routes = document.of(site.installation, loop)
    answered = {
        (method.lower(), document.template(route.path)) for route in routes for method in document.methods(route)
    }
    assert len(answered) > 60
    assert {(method, path) for path, item in written["paths"].items() for method in item} == answered


def test_an_address_that_nobody_described_and_a_line_without_an_address_are_noticed(site: Site, loop: Loop) -> None:
    _, routes = document.of(site.installation, loop)
    prefixes = (site.directory_names.prefix, site.names.prefix)
    with pytest.raises(KeyError):
        document.document([*routes, Route("/rest/nowhere", routes[0].app)], prefixes)
    with pytest.raises(KeyError):
        document.document(routes[1:], prefixes)


def test_strangers_read_it(site: Site, loop: Loop) -> None:
    written, _ = document.of(site.installation, loop)
    schema = schemathesis.openapi.from_dict(written)
    operations = list(schema.get_all_operations())
    assert all(isinstance(operation, Ok) for operation in operations)
    assert len(operations) == sum(len(item) for item in written["paths"].values())
