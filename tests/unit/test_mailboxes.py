"""E-mail addresses: one table of those that are accepted, by alerts and by logins, and of those that are not."""

import pytest

from profilesvc.domain.hosts import mailbox

LONGEST = f"{'a' * 64}@{'.'.join(['b' * 45] * 4)}.com"  # 64 + 1 + 187 characters
ACCEPTED = {
    "a@b.co": "a@b.co",
    "First.Last+tag@Example.com": "First.Last+tag@Example.com",
    "o'brien{x}~_-/=!#$%&*?^`|@example.com": "o'brien{x}~_-/=!#$%&*?^`|@example.com",
    f"{'a' * 64}@example.com": f"{'a' * 64}@example.com",
    f"{LONGEST[:-4]}.info"[:254]: f"{LONGEST[:-4]}.info"[:254],
    f"a@{'b' * 63}.com": f"a@{'b' * 63}.com",
    "a@x-1.example": "a@x-1.example",
    "a@3com.example": "a@3com.example",
    "a@corp.local": "a@corp.local",
    "a@m\u00fcnchen.example": "a@xn--mnchen-3ya.example",
    "a@xn--mnchen-3ya.example": "a@xn--mnchen-3ya.example",
}
REFUSED = [
    *(
        "a..b@example.com",
        ".a@example.com",
        "a.@example.com",
        ".@example.com",
        "..@example.com",
        "a@",
        "@example.com",
        "a",
    ),
    *(f"{'a' * 65}@example.com", f"a@{'b' * 64}.com", f"{'a' * 64}@{'.'.join(['b' * 63] * 3)}.com"),
    *("a@ex..ample.com", "a@.example.com", "a@example.com.", "a@-x.com", "a@x-.com", "a@ex_ample.com", "a@example"),
    *("a@1.2.3.4", "a@[1.2.3.4]", "a@[IPv6:::1]", "a b@example.com", "a@b@example.com", "a@exa mple.com", "a@b.c\n"),
    *('"a b"@example.com', '"a"@example.com', "Ana <a@example.com>", "<a@example.com>", "a(c)@example.com"),
    *(
        "a,b@example.com",
        "a;b@example.com",
        "a:b@example.com",
        "a\\b@example.com",
        "a\tb@example.com",
        "a\x7f@example.com",
    ),
    *(
        "=?utf-8?q?a?=@example.com",
        "a\x00@example.com",
        "a@b.co\r\nBcc: c@example.com",
        "a@\u2025example.com",
        "a@b.\u00ad",
    ),
]


@pytest.mark.parametrize("address", ACCEPTED)
def test_an_address_is_accepted(address: str) -> None:
    assert mailbox(address) == mailbox(address, ascii_only=False) == ACCEPTED[address]


@pytest.mark.parametrize("address", REFUSED, ids=repr)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_an_address_is_refused(address: str, ascii_only: bool) -> None:
    with pytest.raises(ValueError, match="must have"):
        mailbox(address, ascii_only=ascii_only)


def test_only_a_login_may_have_other_characters_before_the_at_sign() -> None:
    assert mailbox("j\u00f6rg@example.com", ascii_only=False) == "j\u00f6rg@example.com"
    with pytest.raises(ValueError, match="must have only ASCII characters before the @"):
        mailbox("j\u00f6rg@example.com")
    for address in (
        "j\u00f6..rg@example.com",
        "j\u00a0rg@example.com",
        "j\u2028rg@example.com",
        "j\u0085rg@example.com",
    ):
        with pytest.raises(ValueError, match="must have"):
            mailbox(address, ascii_only=False)
