"""The settings for HTTP: the address with which links begin."""

import pytest

from muniment.web.options import WebOptions, base_address


@pytest.mark.parametrize(
    ("host", "port", "base"),
    [
        ("127.0.0.1", 8443, "https://127.0.0.1:8443"),
        ("files.example.org", 443, "https://files.example.org"),
        ("0.0.0.0", 8443, "https://localhost:8443"),
        ("::1", 8443, "https://[::1]:8443"),
    ],
)
def test_without_a_base_address_host_and_port_make_one(host: str, port: int, base: str) -> None:
    assert base_address(WebOptions(host=host, port=port)) == base
