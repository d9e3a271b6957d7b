"""What calls that make CIDRs say of overlaps, as the forms of the pages do before they save."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_network
from typing import Any

from drf_spectacular.utils import OpenApiParameter

from pools.core import errors
from pools.platform.rest import generics, query, token_scopes
from pools.register import overlaps

_NAMED = 5  # in the header
_CHOICES = ("warn", "refuse")
PARAMETER = OpenApiParameter(
    "overlaps", str, enum=_CHOICES,
    description="refuse: 409 `overlaps` if the CIDRs overlap those of other address spaces, and nothing is saved;"
    " else the header Warning of the answer names what they overlap.",
)  # fmt: skip


class Overlaps(errors.Conflict):
    """The CIDRs overlap others. Nothing was saved."""

    code = "overlaps"


def are_refused(view: generics.GenericView) -> bool:
    """Return True for `?overlaps=refuse`. Raises InvalidInput, also for other parameters."""
    choice = view.parameters.parse("overlaps", query.choice(*_CHOICES))
    view.parameters.raise_problems()
    return choice == "refuse"


def warn(view: generics.GenericView, cidrs: Iterable[Any], owner: overlaps.NetworkOwner) -> None:
    """Name in the answer what new CIDRs overlap, or with `?overlaps=refuse` raise Overlaps.

    Whoever may not see the pools of others is told nothing of them.
    """
    is_refused = are_refused(view)
    texts = [
        f"{cidr} overlaps {other} of {present} in {present.cluster}"
        for cidr in map(ip_network, map(str, cidrs))
        for other, present in overlaps.find_new_overlaps(cidr, owner)
        if _may_know(view.request, present)
    ]
    if texts and is_refused:
        problems = [errors.FieldProblem("", Overlaps.code, text) for text in texts]
        raise Overlaps(problems=tuple(problems))
    if texts:
        shown = [*texts[:_NAMED], *([f"and {len(texts) - _NAMED} more"] if texts[_NAMED:] else [])]
        view.headers["Warning"] = ", ".join(f'299 - "{text}"' for text in shown)


def _may_know(request: Any, owner: overlaps.NetworkOwner) -> bool:
    limits = token_scopes.limits_of(request.auth)
    if limits is not None and limits.hides("cluster") and owner.cluster_id != limits.cluster_id:
        return False
    return bool(request.user.has_perm("pools.view_pool"))
