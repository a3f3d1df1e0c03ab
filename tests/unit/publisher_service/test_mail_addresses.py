"""An address that the rule of e-mails takes is one that the send takes."""

import pytest

from channels.validation import ChannelPost, violations
from publisher_service.adapters.providers.mail_addresses import is_address
from publisher_service.adapters.providers.mail_rules import EMAIL_RULES

DOMAIN = ".".join(["d" * 61] * 4)  # 247 characters


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("ada@example.com", True),
        ("ada+b=c?d@example.com", True),
        ("l" * 64 + "@example.com", True),
        ("l" * 65 + "@example.com", False),
        ("l" * 6 + f"@{DOMAIN}", True),
        ("l" * 7 + f"@{DOMAIN}", False),
        ("=?utf-8?q?ada?=@example.com", False),
        ("ada=?b@example.com", False),
        ("ada@example.com\n", False),
        ("ada@localhost", False),
        ("a@b@example.com", False),
    ],
)
def test_what_is_no_address_is_refused_at_the_save_and_at_the_send(address: str, *, expected: bool) -> None:
    post = ChannelPost(text="hello", title="Hello", destination=address)
    assert is_address(address) is expected
    assert [each.field for each in violations(post, EMAIL_RULES)] == ([] if expected else ["destination"])
