"""Names and identifiers: of Kubernetes objects, of holders, and the reasons people give.

Two spellings that look the same must not become two holders, and no stored text may forge a log
line or turn a page around; so control, invisible and bidirectional characters are refused here
rather than cleaned up. What is left is stored as it is and escaped where it is shown.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from pools.core import errors

LONGEST_NAME = {"label": 63, "subdomain": 253}
LONGEST_IDENTIFIER = 253
LONGEST_REASON = 500
LONGEST_COOLDOWN = 10 * 365 * 24 * 3600  # seconds; ten years

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
# Not fit for any text: control, format (bidi, zero-width), surrogate, private, unassigned, line ends.
_UNFIT = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def parse_name(
    value: object, *, field: str = "", kind: Literal["subdomain", "label"] = "subdomain"
) -> str:
    """The name of a Kubernetes object: a DNS-1123 subdomain, or one label of it.

    Raises InvalidInput wrong_type, k8s_name.
    """
    text = _text(value, field)
    longest = LONGEST_NAME[kind]
    if not 0 < len(text) <= longest:
        message = f"a name has 1 to {longest} characters"
        raise errors.InvalidInput.for_field(field, "k8s_name", message, text)
    labels = text.split(".") if kind == "subdomain" else [text]
    if not all(map(_LABEL.fullmatch, labels)):
        parts = ", '-' and '.'" if kind == "subdomain" else " and '-'"
        message = (
            f"a name is made of lower-case letters, digits{parts}, "
            "with a letter or digit at both ends of each part"
        )
        raise errors.InvalidInput.for_field(field, "k8s_name", message, text)
    return text


def parse_identifier(
    value: object, *, field: str = "", max_length: int = LONGEST_IDENTIFIER
) -> str:
    """The id of a holder, an organisation, an environment or an object (uid), in Unicode NFC.

    Raises InvalidInput wrong_type, blank, too_long, invisible_character.
    """
    text = _normal(_text(value, field), field, max_length)
    if not text or text != text.strip():
        raise errors.InvalidInput.for_field(
            field, "blank", "may not be empty, nor begin or end with a blank", text
        )
    # Blanks other than the plain one look like it and are not it.
    _check_characters(text, field, unfit=_UNFIT | {"Zs"})
    return text


def parse_reason(
    value: object, *, field: str = "", max_length: int = LONGEST_REASON, required: bool = True
) -> str:
    """Why somebody did something: one line of free text, trimmed, in Unicode NFC.

    Raises InvalidInput wrong_type, blank (when required), too_long, invisible_character.
    """
    text = _normal(_text(value, field).strip(" \t\r\n"), field, max_length)
    _check_characters(text, field, unfit=_UNFIT)
    if required and not text.strip():
        raise errors.InvalidInput.for_field(field, "blank", "say why", text)
    return text


def parse_cooldown(value: object, *, field: str = "") -> int:
    """A cooldown in whole seconds, 0 to ten years.

    Raises InvalidInput wrong_type, out_of_range.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise errors.InvalidInput.for_field(field, "wrong_type", "must be a whole number", value)
    if not 0 <= value <= LONGEST_COOLDOWN:
        message = f"a cooldown is 0 to {LONGEST_COOLDOWN} seconds (ten years)"
        raise errors.InvalidInput.for_field(field, "out_of_range", message, value)
    return value


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(field, "wrong_type", "must be a text", value)
    return value


def _normal(text: str, field: str, max_length: int) -> str:
    # Composing shortens a text to a third at most; what is longer need not be looked at.
    normal = unicodedata.normalize("NFC", text) if len(text) <= 3 * max_length else text
    if len(normal) > max_length:
        message = f"may have at most {max_length} characters"
        raise errors.InvalidInput.for_field(field, "too_long", message, text)
    return normal


def _check_characters(text: str, field: str, *, unfit: set[str]) -> None:
    for char in text:
        if char != " " and unicodedata.category(char) in unfit:
            name = unicodedata.name(char, "no printable character")
            message = f"contains U+{ord(char):04X} ({name})"
            raise errors.InvalidInput.for_field(field, "invisible_character", message, text)
