"""The warning of the forms that take a CIDR: what it would overlap is named before it is saved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms

from pools.core import addresses
from pools.register import overlaps

TICK = "accept_overlaps"
_MOST = 20  # lines of the warning


def accepted(
    form: forms.Form, networks: Iterable[addresses.Network], owner: overlaps.NetworkOwner
) -> bool:
    """Return True if the networks overlap nothing, or if the user has ticked that they may.

    If not, nothing is saved, and the page of the form shows what they overlap (overlap_warning.html).
    """
    found = [
        (network, other, present)
        for network in networks
        for other, present in overlaps.find_new_overlaps(network, owner)
    ]
    shown: Any = form
    shown.overlaps, shown.overlaps_accepted = found[:_MOST], TICK in form.data
    return not found or shown.overlaps_accepted
