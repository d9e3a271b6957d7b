"""Values that people give: custom fields, periods, MAC addresses and names."""

import unicodedata
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import hypothesis
import pytest
from hypothesis import strategies as st

from claims.core import macs
from pools.core import custom_fields, errors, holders, metric_labels, periods


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("Production", "production"),
        (" my tag ", "my-tag"),
        ("a_b__c", "a-b-c"),
        ("team:net/eu-1", "team:net/eu-1"),
        ("ipv6.only", "ipv6.only"),
    ],
)
def test_a_tag_is_a_slug(text: str, tag: str) -> None:
    assert custom_fields.parse_tag(text) == tag


@pytest.mark.parametrize("value", ["", "-a", "a-", "ümlaut", "a,b", "x" * 51, 1, None, "a\u202eb"])
def test_other_tags_are_refused(value: Any) -> None:
    with pytest.raises(errors.InvalidInput):
        custom_fields.parse_tag(value)


def test_tags_are_distinct_and_sorted() -> None:
    assert custom_fields.parse_tags(["b", "A", "a"]) == ["a", "b"]
    with pytest.raises(errors.InvalidInput):
        custom_fields.parse_tags(["t"] * (custom_fields.MOST_TAGS + 1))
    with pytest.raises(errors.InvalidInput):
        custom_fields.parse_tags("a")


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (12, "12"),
        ("0012.500", "12.5"),
        (0.1, "0.1"),
        ("0.10", "0.1"),
        ("-0", "0"),
        ("-0.00", "0"),
        ("+7", "7"),
        ("123456789012345678901234567890.123456789012345", "123456789012345678901234567890.123456789012345"),
        (10**29, "1" + "0" * 29),
        ("100", "100"),
    ],
)  # fmt: skip
def test_a_number_is_exact(value: Any, number: str) -> None:
    assert custom_fields.parse_value("number", [], value) == number


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (True, "wrong_type"),
        ([1], "wrong_type"),
        ("1e3", "number"),
        ("1,5", "number"),
        ("١٢", "number"),
        ("NaN", "number"),
        ("1_000", "number"),
        (1e300, "number"),
        (10**30, "number"),
        (1234.123456789012, "number_precision"),
    ],
)
def test_other_numbers_are_refused(value: Any, code: str) -> None:
    with pytest.raises(errors.InvalidInput) as refusal:
        custom_fields.parse_value("number", [], value)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    "text",
    ["https://wiki.example.org/a?b=c#d", "http://[2001:db8::1]:8080/", "HTTPS://example.org"],
)
def test_a_link_is_a_url(text: str) -> None:
    assert custom_fields.parse_value("link", [], text) == text


@pytest.mark.parametrize(
    "text",
    [
        "javascript:alert(1)",
        " javascript:alert(1)",
        "data:text/html,x",
        "//example.org",
        "https://",
        "https://user:secret@example.org/",
        "https://example.org:x/",
        "https://[::1",
        "https://exa mple.org",
        "java\tscript:alert(1)",
        "ftp://example.org",
    ],
)
def test_other_links_are_refused(text: str) -> None:
    with pytest.raises(errors.InvalidInput):
        custom_fields.parse_value("link", [], text)


@pytest.mark.parametrize("value", [None, "", "  "])
@pytest.mark.parametrize("field_type", ["text", "number", "choice", "link"])
def test_nothing_is_no_value(field_type: str, value: Any) -> None:
    assert custom_fields.parse_value(field_type, ["a"], value) == ""


@pytest.mark.parametrize(
    "texts", [["pool"], ["owner:x"], ["tag:"], ["field:A"], ["tag:a.b", "tag:a/b"], ["owner"] * 2]
)
def test_other_metric_labels_are_refused(texts: list[str]) -> None:
    with pytest.raises(errors.InvalidInput):
        metric_labels.parse_labels(texts)


def test_a_metric_label_has_few_values() -> None:
    class Row:
        tags = ("a",)
        custom_fields: dict[str, str] = {}

        def __init__(self, owner: str) -> None:
            self.owner = owner

    rows = {number: Row(f"team-{number:04}") for number in range(500)} | {900: Row("team-0499")}
    values = metric_labels.label_values(metric_labels.parse_labels(["owner", "tag:a"]), rows)
    owners = {dict(pairs)["attribute_owner"] for pairs in values.values()}
    assert len(owners) == metric_labels.MOST_VALUES + 1
    assert metric_labels.OTHER in owners
    assert dict(values[900]) == {"attribute_owner": "team-0499", "tag_a": "true"}


# --- Times and periods as people write them -------------------------------------------------------
BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 27, 18, 30, tzinfo=BERLIN)  # a Friday

PERIODS = {
    "2026-11-19": ("2026-11-19T00:00+01:00", "2026-11-20T00:00+01:00"),
    "19.11.2026": ("2026-11-19T00:00+01:00", "2026-11-20T00:00+01:00"),
    "1. 9. 2026": ("2026-09-01T00:00+02:00", "2026-09-02T00:00+02:00"),
    "2026-10-25": ("2026-10-25T00:00+02:00", "2026-10-26T00:00+01:00"),  # of 25 hours
    "2026-10": ("2026-10-01T00:00+02:00", "2026-11-01T00:00+01:00"),
    "10.2026": ("2026-10-01T00:00+02:00", "2026-11-01T00:00+01:00"),
    "Yesterday": ("2026-11-26T00:00+01:00", "2026-11-27T00:00+01:00"),
    "last  week": ("2026-11-16T00:00+01:00", "2026-11-23T00:00+01:00"),
    "last month": ("2026-10-01T00:00+02:00", "2026-11-01T00:00+01:00"),
    "today": ("2026-11-27T00:00+01:00", "2026-11-27T18:30+01:00"),  # no later than now
    "2026-11": ("2026-11-01T00:00+01:00", "2026-11-27T18:30+01:00"),
    "1 h": ("2026-11-27T17:30+01:00", "2026-11-27T18:30+01:00"),
    "24h": ("2026-11-26T18:30+01:00", "2026-11-27T18:30+01:00"),
    "7 days": ("2026-11-20T18:30+01:00", "2026-11-27T18:30+01:00"),
}
MOMENTS = {
    "2026-11-19 14:02": "2026-11-19T14:02+01:00",
    "19.11.2026 14:02:30": "2026-11-19T14:02:30+01:00",
    "2026-11-19T14:02": "2026-11-19T14:02+01:00",  # as a browser's picker writes it
    "2026-11-19T14:02:00Z": "2026-11-19T14:02+00:00",
    "2026-11-19T14:02:25.536044Z": "2026-11-19T14:02:25.536044+00:00",
    "2026-11-19T14:02:00 05:30": "2026-11-19T14:02+05:30",
    "7 d ago": "2026-11-20T18:30+01:00",
    "now": "2026-11-27T18:30+01:00",
}


@pytest.mark.parametrize("text", PERIODS)
def test_periods(text: str) -> None:
    period = periods.parse_period(text, NOW)
    assert (period.start, period.end) == tuple(map(datetime.fromisoformat, PERIODS[text]))
    assert not period.is_moment
    assert period.last_moment < period.end


@pytest.mark.parametrize("text", MOMENTS)
def test_points_in_time(text: str) -> None:
    period = periods.parse_period(text, NOW)
    moment = datetime.fromisoformat(MOMENTS[text])
    assert (period.start, period.end, period.last_moment) == (moment, moment, moment)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("2026-11-28", "future_time"),
        ("2027-01", "future_time"),
        ("2026-11-27 19:00", "future_time"),
        ("2026-02-30", "time"),
        ("2026-13", "time"),
        ("31.11.2026", "time"),
        ("1999-12-31", "time"),
        ("2026-11-19 25:00", "time"),
        ("99999 w", "time"),
        ("noon", "time"),
        ("11/19/2026", "time"),
    ],
)
def test_what_cannot_be_meant(text: str, code: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        periods.parse_period(text, NOW, "at")
    assert (caught.value.code, caught.value.problems[0].field) == (code, "at")


@hypothesis.given(st.text(max_size=40))
def test_any_text_is_a_period_or_refused(text: str) -> None:
    try:
        period = periods.parse_period(text, NOW.astimezone(UTC))
    except errors.InvalidInput:
        return
    assert period.start <= period.end


# --- MAC addresses: one form of each is stored, and rule `mac-has-one-form` says what is refused
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


# --- Names, identifiers and reasons: what passes. What does not: test_bad_input -------------------
LABEL = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


@hypothesis.given(LABEL)
def test_labels_pass_as_both_kinds(label: str) -> None:
    assert holders.parse_name(label, kind="label") == label
    assert holders.parse_name(label) == label


@hypothesis.given(st.lists(LABEL, min_size=2, max_size=3))
def test_subdomains_are_no_labels(labels: list[str]) -> None:
    name = ".".join(labels)
    assert holders.parse_name(name) == name
    with pytest.raises(errors.InvalidInput):
        holders.parse_name(name, kind="label")


@hypothesis.given(st.text(st.characters(categories=["L", "M", "N", "P", "S"]), min_size=1))
def test_printable_identifiers_are_kept_in_one_normal_form(text: str) -> None:
    identifier = holders.parse_identifier(text[:80])
    assert identifier == unicodedata.normalize("NFC", text[:80])
    assert holders.parse_identifier(identifier) == identifier


def test_both_spellings_of_a_letter_are_one_holder() -> None:
    assert holders.parse_identifier("cafe\u0301") == holders.parse_identifier("caf\u00e9")


def test_the_length_counts_what_is_stored() -> None:
    assert len(holders.parse_identifier("e\u0301" * 253)) == 253
    assert holders.parse_identifier("abc", max_length=3) == "abc"
    with pytest.raises(errors.InvalidInput) as caught:
        holders.parse_identifier("abcd", max_length=3)
    assert caught.value.code == "too_long"


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_reason_may_be_optional(text: str) -> None:
    assert holders.parse_reason(text, required=False) == ""


def test_a_reason_may_have_the_blanks_of_its_language() -> None:
    assert holders.parse_reason("le nœud\u00a0: perdu") == "le nœud\u00a0: perdu"
