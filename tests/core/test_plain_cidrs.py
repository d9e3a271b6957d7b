"""The short cut for plain IPv4 CIDRs says what the parser itself says of every text."""

import random

import pytest

from pools.core import addresses, errors

_OCTETS = (0, 1, 10, 127, 128, 168, 169, 172, 192, 223, 224, 239, 255, 256, 300)


def _texts(count: int) -> list[str]:
    choose = random.Random(7)  # noqa: S311  # the same texts each time
    result = []
    for _ in range(count):
        octets = [choose.choice((*_OCTETS, choose.randrange(256))) for _ in range(4)]
        octets[choose.randrange(1, 5) :] = []
        octets += [0] * (4 - len(octets))
        text = ".".join(map(str, octets)) + f"/{choose.randrange(36)}"
        odd = choose.random()
        if odd < 0.05:
            text = text.replace("1", "\uff11", 1)
        elif odd < 0.1:
            text = "0" + text
        elif odd < 0.15:
            text += choose.choice("\n \t/0")
        result.append(text)
    return result


def _said(text: str, *, allow_short: bool) -> object:
    try:
        return addresses.parse_cidr(text, allow_short=allow_short)
    except errors.InvalidInput as error:
        return error.code, error.message


@pytest.mark.parametrize("allow_short", [False, True])
def test_both_ways_agree(monkeypatch: pytest.MonkeyPatch, allow_short: bool) -> None:
    texts = _texts(20_000)
    quick = [_said(text, allow_short=allow_short) for text in texts]
    monkeypatch.setattr(addresses, "_parse_plain_cidr", lambda _: None)
    assert quick == [_said(text, allow_short=allow_short) for text in texts]
    accepted = sum(not isinstance(item, tuple) for item in quick)
    assert 1_000 < accepted < 19_000
