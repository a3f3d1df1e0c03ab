"""A URL of a server is distinguished from those of all others, before anything is sent there."""

import pytest

from publisher_service.adapters.providers.http_origin import HttpOrigin


@pytest.mark.parametrize(
    ("origin", "url", "path"),
    [
        ("https://api.example", "https://api.example/a?b=c", "/a?b=c"),
        ("https://api.example", "https://API.example:443/a#b", "/a"),
        ("http://127.0.0.1:81/v1/", "http://127.0.0.1:81/v1/a", "/a"),
        ("http://127.0.0.1:81/v1", "http://127.0.0.1:81/v2/a", None),
        ("http://127.0.0.1:81/v1", "http://127.0.0.1:81/v1a", None),
        ("https://api.example", "http://api.example/a", None),
        ("https://api.example", "https://api.example:444/a", None),
        ("https://api.example", "https://api.example.evil.example/a", None),
        ("https://api.example", "https://evil.example@api.example/a", None),
        ("https://api.example", "https://api.example:x/a", None),
        ("https://api.example", "//api.example/a", None),
        ("https://api.example", "", None),
    ],
)
async def test_only_urls_of_the_server_itself_have_a_path_there(origin: str, url: str, path: str | None) -> None:
    assert HttpOrigin(origin, connections=1).path_of(url) == path
