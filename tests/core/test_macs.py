"""MAC addresses: one form of each is stored, and rule `mac-has-one-form` says what is refused."""

import pytest

from claims.core import macs
from pools.core import errors

MAC = "00:1a:4b:12:34:56"


@pytest.mark.parametrize(
    "text",
    [
        MAC,
        "00:1A:4B:12:34:56",
        "00-1A-4B-12-34-56",
        "001a.4b12.3456",
        "001A4B-123456",
        "001A4B123456",
    ],
)
def test_every_usual_spelling_is_one_mac(text: str) -> None:
    assert macs.parse_mac(text) == MAC


def test_octets_of_one_digit_are_read_from_people_only() -> None:
    assert macs.parse_mac(" 0:1a:4b:12:34:56 ", lenient=True) == MAC
    with pytest.raises(errors.InvalidInput):
        macs.parse_mac("0:1a:4b:12:34:56")


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("12345", "mac_syntax"),
        ("00:1a:4b:12:34", "mac_syntax"),
        ("00:1a:4b:12:34:5g", "mac_syntax"),
        ("00:1a-4b:12:34:56", "mac_syntax"),
        ("0x001a4b123456", "mac_syntax"),
        (MAC + "\n", "mac_syntax"),
        ("", "mac_syntax"),
        ("00:1a:4b:ff:fe:12:34:56", "eui64_not_supported"),
        ("001a4bfffe123456", "eui64_not_supported"),
        ("ff:ff:ff:ff:ff:ff", "multicast_mac"),
        ("01:00:5e:00:00:01", "multicast_mac"),
        ("33:33:00:00:00:01", "multicast_mac"),
        ("00:00:00:00:00:00", "zero_mac"),
        (8846009706, "wrong_type"),  # 11:22:33:44:55:06 without quotes in YAML 1.1
        (True, "wrong_type"),
        (None, "wrong_type"),
        ([MAC], "wrong_type"),
    ],
)
def test_what_is_no_mac_is_refused(value: object, code: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        macs.parse_mac(value, field="mac")
    assert [problem.code for problem in caught.value.problems] == [code]
