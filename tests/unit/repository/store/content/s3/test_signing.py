"""Signatures, compared with the examples of the specification."""

from datetime import UTC, datetime

import pytest

from muniment.repository.store.content.s3.signing import S3Request, SigningKey

KEY = SigningKey("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")


@pytest.mark.parametrize(
    ("query", "signature"),
    [
        ({"lifecycle": ""}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ({"prefix": "J", "max-keys": "2"}, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)
def test_requests_are_signed_as_in_the_examples(query: dict[str, str], signature: str) -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html"""
    request = S3Request("GET", "examplebucket.s3.amazonaws.com", "/", query)
    headers = request.headers(KEY, datetime(2013, 5, 24, tzinfo=UTC))
    assert headers["authorization"].endswith(f"Signature={signature}")
    assert headers["x-amz-date"] == "20130524T000000Z"


def test_the_path_and_the_query_are_quoted() -> None:
    assert S3Request("GET", "h", "/b/ü +", {"b": "a&b", "a": ""}).target == "/b/%C3%BC%20%2B?a=&b=a%26b"
