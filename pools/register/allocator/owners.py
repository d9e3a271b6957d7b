"""Require the owner (org and env) of an instance's address and of a public IPv4 address.

Rule `owner-is-named`. The setting IPAM_ALLOW_UNOWNED_ALLOCATIONS relaxes it.
"""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings

from pools.core import errors, holders
from pools.models import Pool
from pools.models.pools import Category

CODE = "owner_required"
_KIND = {Category.INSTANCE.value: "instance", Category.IPV4.value: holders.ENVIRONMENT}


def require_owner(pool_id: int, block_demand: holders.BlockDemand) -> None:
    """Raise InvalidInput `owner_required` with every field that is missing or has a wrong value."""
    if settings.IPAM_ALLOW_UNOWNED_ALLOCATIONS:
        return
    try:
        kind = _KIND.get(_category(pool_id))
    except Pool.DoesNotExist:
        return  # the allocator raises NotFound
    if kind is None:
        return
    problems = list(_find_problems(kind, block_demand))
    if problems:
        raise errors.InvalidInput.all(problems)


@lru_cache(maxsize=65536)  # a category never changes, and ids of pools are not reused
def _category(pool_id: int) -> str:
    return Pool.objects.values_list("category", flat=True).get(pk=pool_id)


def _find_problems(kind: str, block_demand: holders.BlockDemand) -> list[errors.FieldProblem]:
    subject = "an instance's address" if kind == "instance" else "a public IPv4 address"
    problems = []
    if not block_demand.org:
        problems.append(errors.FieldProblem("org", CODE, f"{subject} needs the org that it serves"))
    # A holder of the kind env is the environment itself.
    if not block_demand.env and kind != holders.ENVIRONMENT:
        problems.append(errors.FieldProblem("env", CODE, f"{subject} needs the env that it serves"))
    for index, holder in enumerate(block_demand.holders):
        if holder.kind != kind:
            path = f"holders.{index}.kind" if len(block_demand.holders) > 1 else "holder.kind"
            message = f"{subject} needs a holder of the kind {kind}"
            problems.append(
                errors.FieldProblem(path, CODE, message, errors.display_value(holder.kind))
            )
    return problems
