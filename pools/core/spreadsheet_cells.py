"""Cells of spreadsheets: their types, and escaping of strings in them."""

import re
import string
from collections.abc import Sequence

MAX_COLUMNS = 16_384

Row = tuple[int, Sequence[str]]  # row number, from 1, and cells; rows may be short


class Number(str):
    """A cell that holds a number."""

    __slots__ = ()


class Date(str):
    """A cell that holds a date or a time."""

    __slots__ = ()


class Formula(str):
    """A cell that holds a formula."""

    __slots__ = ()


class Failure(str):
    """A cell that holds a spreadsheet error such as #N/A."""

    __slots__ = ()


_NUMBER = re.compile(r"[-+]?[0-9]+(?:[.,][0-9]+)?(?:[eE][-+]?[0-9]+)?")
_DATE = re.compile(
    r"[0-9]{1,4}([-./])[0-9]{1,2}\1[0-9]{2,4}(?:[ T][0-9:.]+)?"
    r"|[0-9]{1,2}[-. ]+(?:[^\W\d_]{3,9})\.?(?:[-. ]+[0-9]{2,4})?"
    r"|(?:[^\W\d_]{3,9})[-. ]+[0-9]{1,4}"
)
_LIST_TYPE = re.compile(r"System\.(?:\w+\[\]|Collections\..*|Object.*)")
_ERROR = re.compile(r"#(?:N/A|REF!|VALUE!|NAME\?|DIV/0!|NUM!|NULL!|NV|WERT!|BEZUG!)", re.IGNORECASE)
MANGLED = "the spreadsheet converted it to {what}; format the column as text and enter it again"


def looks_mangled(text: str) -> str:
    """Return what a spreadsheet made of a text that should be an address: `a number`, `a date`; "" for neither."""
    if _NUMBER.fullmatch(text.strip()):
        return "a number"
    return "a date" if _DATE.fullmatch(text.strip()) else ""


def find_damage(text: str) -> tuple[str, str]:
    """Return code and message of a cell that has a formula, an error or the type of a list instead of a value; "" for others."""
    if isinstance(text, Formula) or text.startswith("="):
        return "formula", "is a formula; replace it by its value"
    if isinstance(text, Failure) or _ERROR.fullmatch(text):
        return "spreadsheet_error", "is a spreadsheet error"
    if _LIST_TYPE.fullmatch(text):
        return "list_type", "PowerShell wrote the type of a list; export its values with -join ','"
    return "", ""


def whole_number(text: str) -> str:
    """Return a number without the decimals that a spreadsheet gives a whole one: `24.0` is 24; other texts unchanged."""
    return _WHOLE.sub(r"\1", text)


_WHOLE = re.compile(r"^([0-9]+)[.,]0+$")
_MASK_BEHIND = re.compile(r"(?<=[0-9])\s+(?=(?:255|0)\.)")  # 10.0.0.0 255.255.255.0
_OTHER_ADDRESS = re.compile(r"/(?=(?!255\.|0\.)[0-9]+(?:\.[0-9]+){3})")  # 10.0.0.1 / 10.0.0.2
_BETWEEN = re.compile(
    r"(?<=[0-9a-fA-F:])(?:\s*(?:[-\u2013\u2014\u2026]|\.{2,3})\s*|\s+(?:to|bis|au|à|al|a|hasta)\s+)(?=[0-9a-fA-F:.])"
)
_SIGNS = re.compile(r"[,;|\s]+")
_SIGNS_AND_WORDS = re.compile(r"(?:[,;|&\s]|\+(?=\s*[0-9]+\.)|\b(?:and|und|et|y)\b)+")
_BLANKS = " \t\xa0"


def join_mask(text: str) -> str:
    """Return a text with a slash between an address and the mask behind it."""
    return _MASK_BEHIND.sub("/", text)


def join_range(text: str) -> str:
    """Return a text with a hyphen for each other sign or word between the ends of a range."""
    return _BETWEEN.sub("-", text)


def spell_out(text: str) -> str:
    """Return a text with whole addresses for the last numbers behind one: `10.0.0.1-.9`, `10.0.0.1/2/3`, `10.0.0.1, 2`."""
    text = _POINT_BEHIND.sub("-", text)
    return _LAST_NUMBERS.sub(
        lambda match: ", ".join(match[1] + last for last in re.findall("[0-9]+", match[2])), text
    )


_POINT_BEHIND = re.compile(r"(?<=[0-9])\s*-\s*\.(?=[0-9]{1,3}(?![0-9.]))")
_LAST_NUMBERS = re.compile(
    r"(?<![0-9.:])((?:[0-9]{1,3}\.){3})"
    r"([0-9]{1,3}(?:(?:\s*/\s*[0-9]{1,3}){2,}|(?:\s*[,;+&]\s*\.?[0-9]{1,3})+))(?![0-9.:/])"
)


def split_values(text: str) -> list[str]:
    """Split a cell with several addresses, which may have prefix lengths: `10.0.0.21 /24, 10.0.0.22 /24`, `10.0.0.1 & 10.0.0.2`."""
    joined = _OTHER_ADDRESS.sub(" ", _join_slashes(join_mask(text)))
    return [part for part in _SIGNS_AND_WORDS.split(joined) if part]


def split_words(text: str) -> list[str]:
    """Split a line of names and addresses at blanks, commas, semicolons and bars."""
    return [part for part in _SIGNS.split(_join_slashes(text)) if part]


def _join_slashes(text: str) -> str:
    return "/".join([part.strip(_BLANKS) for part in text.split("/")]) if "/" in text else text


# Soft hyphens, marks of width, direction and byte order, which come with texts of web pages.
INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
# Around a text: blanks, and the bullets and lines of a tree, as NetBox 3 and people write them.
DECORATION = string.whitespace + "\xa0●•◦○▪└├─│"


def clean(text: str) -> str:
    """Return a cell without invisible characters and without decoration around it."""
    if type(text) is not str or text.isascii():
        return text
    return INVISIBLE.sub("", text).strip(DECORATION)


# Prefixes of a formula; some programs accept the full-width forms too.
_COMPUTED = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def escape(text: str) -> str:
    """Return a string that no spreadsheet evaluates as a formula (OWASP ASVS 1.2.10)."""
    return f"'{text}" if text.startswith(_COMPUTED) else text


_QUOTED = re.compile('="([^"]*)"')
_PLACE = re.compile(r"'(?=[0-9a-fA-F.:/]+$)")


def unescape(text: str) -> str:
    """Return the original of an escaped string, and of a text that a spreadsheet quotes: `="10.0.0.1"`, `'10.0.0.1`."""
    if match := _QUOTED.fullmatch(text):
        return match[1]
    if _PLACE.match(text):
        return text[1:]
    return text[1:] if text[:1] == "'" and escape(text[1:]) == text else text
