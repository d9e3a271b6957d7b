"""Parsers of tags, owners, and definitions and values of custom fields.

A value is stored as one text in canonical form, whatever its type, so that equal values are equal in every
index and no number passes through a float.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from urllib.parse import urlsplit

from pools.core import errors, holders

MOST_TAGS = 50
LONGEST_TAG = 50
LONGEST_OWNER = 253
LONGEST_LABEL = 100
MOST_CHOICES = 100
LONGEST_TEXT = 500
LONGEST_LINK = 2000

_TAG = re.compile(r"[a-z0-9](?:[-a-z0-9.:/]*[a-z0-9])?")
_TAG_GAP = re.compile(r"[\s_]+")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,49}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{1,15})?")
_EXACT_DIGITS = 15  # of a JSON number with a fraction, which JSON readers may keep as a float


def parse_tag(value: object, field: str = "") -> str:
    """Return a tag as a slug: lower case, `-` for blanks and underscores. Raises InvalidInput wrong_type, tag."""
    text = _TAG_GAP.sub("-", holders.parse_description(value, field=field).lower())
    if not _TAG.fullmatch(text) or len(text) > LONGEST_TAG:
        message = (
            f"a tag has 1 to {LONGEST_TAG} letters a-z, digits, '-', '.', ':' and '/',"
            " with a letter or digit at both ends"
        )
        raise errors.InvalidInput.for_field(field, "tag", message, value)
    return text


def parse_tags(value: object, field: str = "") -> list[str]:
    """Return distinct tags in their order. Raises InvalidInput wrong_type, tag, too_many."""
    if not isinstance(value, list | tuple):
        raise errors.InvalidInput.for_field(field, "wrong_type", "a list of tags is expected")
    if len(value) > MOST_TAGS:
        message = f"an object has at most {MOST_TAGS} tags"
        raise errors.InvalidInput.for_field(field, "too_many", message)
    path = f"{field}." if field else ""
    return sorted({parse_tag(tag, f"{path}{index}") for index, tag in enumerate(value)})


def parse_owner(value: object, field: str = "") -> str:
    """Return the name or mail address of a team or person, which may be empty."""
    return holders.parse_description(value, field=field, max_length=LONGEST_OWNER)


def parse_name(value: object, field: str = "name") -> str:
    """Return the name of a custom field. Raises InvalidInput wrong_type, custom_field_name."""
    text = holders.parse_description(value, field=field)
    if not _NAME.fullmatch(text) or "__" in text:  # lists would read a path in it
        message = "1 to 50 lower-case letters, digits and single '_', with a letter first"
        raise errors.InvalidInput.for_field(field, "custom_field_name", message, value)
    return text


def parse_label(value: object, field: str = "label") -> str:
    """Return a label of a field, or one of its choices: a text of one line."""
    return holders.parse_reason(value, field=field, max_length=LONGEST_LABEL)


def check_choices(field_type: str, choices: Sequence[str]) -> None:
    """Check that a field has choices exactly if its type needs them, each once. Raises InvalidInput."""
    problem: tuple[str, str] | None = None
    if field_type == "choice" and not choices:
        problem = ("required", "name the choices")
    elif field_type != "choice" and choices:
        problem = ("choices_not_allowed", f"a field of the type {field_type} has no choices")
    elif len(choices) > MOST_CHOICES:
        problem = ("too_many", f"a field has at most {MOST_CHOICES} choices")
    elif len(choices) > len(set(choices)):
        problem = ("repeated", "a choice is there twice")
    if problem:
        raise errors.InvalidInput.for_field("choices", *problem)


def parse_value(field_type: str, choices: Sequence[str], value: object, field: str = "") -> str:
    """Return a value of a field of one of the types text, number, choice, link in canonical form; "" for none.

    Raises InvalidInput wrong_type, number, number_precision, invalid_choice, link, too_long or
    invisible_character.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return ""
    match field_type:
        case "number":
            return _parse_number(value, field)
        case "choice":
            return _parse_choice(value, choices, field)
        case "link":
            return _parse_link(value, field)
    return holders.parse_reason(value, field=field, max_length=LONGEST_TEXT)


def _parse_number(value: object, field: str) -> str:
    """Return a decimal number without an exponent, leading zeros or trailing zeros of its fraction."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise errors.InvalidInput.for_field(field, "wrong_type", "a number is expected", value)
    text = value.strip() if isinstance(value, str) else repr(value)
    if not _NUMBER.fullmatch(text):
        message = (
            "a decimal number of at most 30 digits before and 15 after the point, such as 12.5"
        )
        raise errors.InvalidInput.for_field(field, "number", message, text)
    if isinstance(value, float) and sum(map(str.isdigit, text)) > _EXACT_DIGITS:
        message = f"write a fraction of more than {_EXACT_DIGITS} digits as a text in quotes"
        raise errors.InvalidInput.for_field(field, "number_precision", message, text)
    number = f"{Decimal(text):f}"
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return "0" if number in {"-0", "0"} else number


def _parse_choice(value: object, choices: Sequence[str], field: str) -> str:
    text = holders.parse_reason(value, field=field, max_length=LONGEST_LABEL)
    if text not in choices:
        message = f"must be one of {', '.join(choices)}"
        raise errors.InvalidInput.for_field(field, "invalid_choice", message, text)
    return text


def _parse_link(value: object, field: str) -> str:
    text = holders.parse_reason(value, field=field, max_length=LONGEST_LINK)
    try:
        parts = urlsplit(text)
        fits = parts.scheme in {"http", "https"} and parts.hostname and "@" not in parts.netloc
        _port = parts.port  # reads it
    except ValueError:
        fits = False
    if not fits or " " in text or "\\" in text:
        message = "an http:// or https:// URL with a host and without a user name is expected"
        raise errors.InvalidInput.for_field(field, "link", message, text)
    return text
