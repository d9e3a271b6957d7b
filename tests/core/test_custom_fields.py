"""Tags, definitions and values of custom fields have one canonical form, or are refused with a code."""

from typing import Any

import pytest

from pools.core import custom_fields, errors, metric_labels


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
