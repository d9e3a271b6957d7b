"""Pieces that the forms share: fields read by the register's own parsers, in unfold's looks."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from unfold import widgets

from pools.core import addresses, errors, holders

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(-?[0-9]{1,99})\s*(?:(s|m|h|d)[a-z]*)?", re.IGNORECASE)


def text(**attrs: str) -> forms.Widget:
    """One line."""
    return widgets.UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", **attrs})


def addresses_text(**attrs: str) -> forms.Widget:
    """One line of addresses: monospaced, not spell-checked."""
    return text(**{"class": "cad-mono-input", "spellcheck": "false", **attrs})


def lines(rows: int, **attrs: str) -> forms.Widget:
    """Several lines of addresses."""
    more = {"rows": str(rows), "class": "cad-mono-input", "spellcheck": "false", **attrs}
    return widgets.UnfoldAdminTextareaWidget(attrs=more)


def select() -> forms.Widget:
    return widgets.UnfoldAdminSelectWidget()


def tick() -> forms.Widget:
    return widgets.UnfoldBooleanWidget()


class ParsedField(forms.CharField):
    """A text that one of the register's parsers reads; empty is None unless required."""

    widget = addresses_text

    def __init__(self, parse: Any, **options: Any) -> None:
        self._parse = parse
        options.setdefault("widget", addresses_text())
        super().__init__(strip=False, **options)

    def clean(self, value: Any) -> Any:
        given = super().clean(value)
        if not given.strip():
            if self.required:
                raise forms.ValidationError(self.error_messages["required"], code="required")
            return None
        try:
            return self._parse(given)
        except errors.InvalidInput as error:
            raise forms.ValidationError([_said(problem) for problem in error.problems]) from None


def _said(problem: errors.FieldProblem) -> forms.ValidationError:
    message = problem.message[:1].upper() + problem.message[1:]
    return forms.ValidationError(
        message if message.endswith(("?", ".")) else f"{message}.", code=problem.code
    )


def cidr_field(**options: Any) -> ParsedField:
    return ParsedField(
        lambda t: addresses.parse_cidr(t, source=addresses.InputSource.TEXT), **options
    )


def block_field(**options: Any) -> ParsedField:
    """A block as a CIDR, or an address as the block of one."""
    return ParsedField(
        lambda t: addresses.parse_block(t, source=addresses.InputSource.TEXT), **options
    )


def range_field(**options: Any) -> ParsedField:
    return ParsedField(
        lambda t: addresses.parse_range(t, source=addresses.InputSource.TEXT), **options
    )


def name_field(**options: Any) -> ParsedField:
    """The name of a Kubernetes object."""
    options.setdefault("widget", text())
    return ParsedField(lambda t: holders.parse_name(t.strip(addresses.BLANKS)), **options)


def identifier_field(**options: Any) -> ParsedField:
    """The id of a holder, an organisation or an environment."""
    options.setdefault("widget", text())
    return ParsedField(lambda t: holders.parse_identifier(t.strip(addresses.BLANKS)), **options)


def reason_field(**options: Any) -> ParsedField:
    """Why somebody does something."""
    options.setdefault("widget", text())
    options.setdefault("help_text", "It is kept in the history.")
    return ParsedField(holders.parse_reason, **options)


class RangesField(forms.CharField):
    """Reserved ranges, one in a line; each bad line is named."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("widget", lines(2, placeholder="10.20.0.0-10.20.0.99"))
        super().__init__(required=False, strip=False, **options)

    def clean(self, value: Any) -> Any:
        found: list[addresses.AddressRange] = []
        wrong: list[forms.ValidationError] = []
        for number, line in enumerate(super().clean(value).splitlines(), start=1):
            if not line.strip():
                continue
            try:
                found.append(addresses.parse_range(line, source=addresses.InputSource.TEXT))
            except errors.InvalidInput as error:
                wrong += [
                    forms.ValidationError(f"Line {number}: {problem.message}", code=problem.code)
                    for problem in error.problems
                ]
        if wrong:
            raise forms.ValidationError(wrong)
        return tuple(found)


class DurationField(forms.CharField):
    """Seconds, or a number with its unit: `30 days`, `24h`, `90 min`; empty is None."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("widget", text(placeholder="24 hours"))
        super().__init__(required=False, **options)

    def clean(self, value: Any) -> Any:
        given = super().clean(value)
        if not given:
            return None
        match = _DURATION.fullmatch(given)
        if match is None:
            raise forms.ValidationError(
                "Write a number and its unit: 90 minutes, 24 hours, 30 days, or 0.", code="duration"
            )
        try:
            return holders.parse_cooldown(int(match[1]) * _UNITS[(match[2] or "s").lower()])
        except errors.InvalidInput as error:
            raise forms.ValidationError([_said(problem) for problem in error.problems]) from None
