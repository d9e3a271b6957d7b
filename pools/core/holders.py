"""Holders of blocks, what they demand, and parsers of names, holder identifiers, reasons and cooldowns.

Two spellings that look the same must not become two holders, and stored text must not forge a log
line or change the direction of a page. So control, invisible and bidirectional characters are refused,
not removed. All other text is stored unchanged and escaped where it is displayed.
"""

import functools
import hashlib
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from pools.core import addresses, errors

LONGEST_NAME = {"label": 63, "subdomain": 253}
LONGEST_IDENTIFIER = 253
LONGEST_REASON = 500
LONGEST_NOTE = 5000
LONGEST_COOLDOWN = 10 * 365 * 24 * 3600  # seconds; ten years

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
# Unicode categories that no text may have: control, format (bidi, zero-width), surrogate, private,
# unassigned, line and paragraph separators.
_UNFIT = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def parse_name(
    value: object, field: str = "", *, kind: Literal["subdomain", "label"] = "subdomain"
) -> str:
    """Return the name of a Kubernetes object: a DNS-1123 subdomain or label.

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


# The name of a namespace and the like.
parse_label = functools.partial(parse_name, kind="label")


def parse_identifier(
    value: object, field: str = "", *, max_length: int = LONGEST_IDENTIFIER
) -> str:
    """Return the id of a holder, an organization, an environment or an object (uid) in Unicode NFC.

    Raises InvalidInput wrong_type, blank, too_long, invisible_character.
    """
    text = _normalize(_text(value, field), field, max_length)
    if not text or text != text.strip():
        raise errors.InvalidInput.for_field(
            field, "blank", "may not be empty, nor begin or end with a blank", text
        )
    # Other Unicode spaces look like the ASCII blank, but differ from it.
    _check_characters(text, field, unfit=_UNFIT | {"Zs"})
    return text


def shorten_identifier(text: str) -> str:
    """Return a composed id that fits: a longer one ends in its digest, so that two of one beginning differ."""
    if len(text) <= LONGEST_IDENTIFIER:
        return text
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
    return f"{text[: LONGEST_IDENTIFIER - len(digest) - 1]}~{digest}"


def parse_reason(
    value: object, field: str = "", *, max_length: int = LONGEST_REASON, required: bool = True
) -> str:
    """Return a reason: one line of free text, trimmed, in Unicode NFC.

    Raises InvalidInput wrong_type, blank (when required), too_long, invisible_character.
    """
    text = _normalize(_text(value, field).strip(" \t\r\n"), field, max_length)
    _check_characters(text, field, unfit=_UNFIT)
    if required and not text.strip():
        raise errors.InvalidInput.for_field(field, "blank", "must not be empty", text)
    return text


# A reason that may be empty.
parse_description = functools.partial(parse_reason, required=False)


def parse_note(value: object, field: str = "", *, max_length: int = LONGEST_NOTE) -> str:
    """Return free text of several lines, trimmed, in Unicode NFC, without tabs, with "\\n" as line break.

    Raises InvalidInput wrong_type, blank, too_long, invisible_character.
    """
    lines = _text(value, field).replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    text = _normalize(lines.strip(), field, max_length)
    for line in text.split("\n"):
        _check_characters(line, field, unfit=_UNFIT)
    if not text:
        raise errors.InvalidInput.for_field(field, "blank", "a text is expected", text)
    return text


def parse_cooldown(value: object, field: str = "") -> int:
    """Return a cooldown in whole seconds, 0 to ten years.

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


def _normalize(text: str, field: str, max_length: int) -> str:
    # NFC shortens a string to a third at most, so that a longer one need not be normalized.
    normal = unicodedata.normalize("NFC", text) if len(text) <= 3 * max_length else text
    if len(normal) > max_length:
        message = f"may have at most {max_length} characters"
        raise errors.InvalidInput.for_field(field, "too_long", message, text)
    return normal


def _check_characters(text: str, field: str, *, unfit: set[str]) -> None:
    if text.isascii() and text.isprintable():
        return
    for char in text:
        if char != " " and unicodedata.category(char) in unfit:
            name = unicodedata.name(char, "no printable character")
            message = f"contains U+{ord(char):04X} ({name})"
            raise errors.InvalidInput.for_field(field, "invisible_character", message, text)


MOST_BLOCKS = 10_000  # blocks in one request
# The kind of holder that is an environment: its id is unique within its org only.
ENVIRONMENT = "env"


class Holder(NamedTuple):  # a batch creates ten thousand; a dataclass takes five times as long
    """The holder of a block; `uid` distinguishes successive objects of the same name."""

    kind: str
    id: str
    uid: str = ""


@dataclass(frozen=True)
class BlockDemand:
    """A request for `count` blocks of each family for each holder, or for the block `cidr`.

    Empty `families` means every family of the pool. With `reuse`, blocks that a holder holds in the pool count:
    only what it lacks is allocated, so that the request can be repeated at any time.
    """

    holders: tuple[Holder, ...]
    families: tuple[int, ...] = ()
    count: int = 1
    org: str = ""
    env: str = ""
    cidr: addresses.Network | None = None
    reuse: bool = False

    @property
    def environment(self) -> str:
        """The environment of all blocks; "" if there are several or none."""
        served = self.environments
        return served[0] if len(served) == 1 else ""

    @property
    def environments(self) -> tuple[str, ...]:
        """The environments of the blocks, sorted."""
        if self.env:
            return (self.env,)
        return tuple(sorted({env for env in map(self.env_of, self.holders) if env}))

    def env_of(self, holder: Holder) -> str:
        """Return the environment of a holder's block; an `env` holder is itself the environment."""
        return self.env or (holder.id if holder.kind == ENVIRONMENT else "")


_YEARS = (2000, 2200)


def parse_timestamp(value: str, field: str = "") -> datetime:
    """Return an RFC 3339 timestamp in UTC. Raises InvalidInput `time` without a zone or outside 2000-2199."""
    try:
        # An unescaped "+" of a query string arrives as a blank.
        moment = datetime.fromisoformat(value.replace(" ", "+") if "T" in value else value)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or not _YEARS[0] <= moment.year < _YEARS[1]:
        message = "must be a time with a zone such as 2026-05-05T14:02:00Z"
        raise errors.InvalidInput.for_field(field, "time", message, value)
    return moment.astimezone(UTC)
