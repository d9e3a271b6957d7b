"""What may become of a cluster's CiliumPodIPPools, as the register sees it.

Cilium takes what its CRD allows: it orphans the blocks of a CIDR that is removed, and hands out
blocks of overlapping pools twice. Judged is what a request changes, never what was there before, so
that an object which is wrong already can be labelled, repaired and deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pools.core import addresses, errors, object_reader
from pools.core.cilium import conversion, podippool
from pools.models import AddressSpace
from pools.register import manifests
from pools.webhooks import oddities, register, reviews
from pools.webhooks.reviews import Review, Verdict

V2ALPHA1 = "v2alpha1"

Entries = dict[addresses.Network, podippool.CidrEntry]


def judge(review: Review, space: AddressSpace) -> Verdict:
    """The verdict over one request; `space` is the cluster's own. Reads only."""
    verdict = Verdict()
    known = register.known(space.cluster_id, review.name)
    if known is not None and not known.is_of_pods:
        message = f"the register has a {known.pool.category} pool of the name {review.name}"
        if review.operation == reviews.CREATE:
            verdict.refuse(errors.AlreadyExists(message))
        else:
            verdict.warn(message)
        known = None
    if review.operation == reviews.DELETE:
        _judge_removal(review, known, verdict)
    elif review.old is None or review.old.get("spec") != (review.new or {}).get("spec"):
        _judge_change(review, known, space, verdict)
    return verdict


def _judge_removal(review: Review, known: register.Known | None, verdict: Verdict) -> None:
    if known is None:
        verdict.warn(
            f"the register has no pool {review.name}; whether nodes hold blocks of it is unknown"
        )
        return
    for row, _, used in register.in_use(known.places):
        message = f"the pool {review.name} is in use: {row.cidr} has {used}"
        verdict.refuse(errors.PoolInUse(message))


# --- create and update ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Change:
    """One request, read: `before` is what it replaces, None when nothing or nothing readable."""

    review: Review
    space: AddressSpace
    known: register.Known | None
    pool: podippool.PodIPPool
    before: podippool.PodIPPool | None

    @property
    def is_update(self) -> bool:
        return self.review.operation == reviews.UPDATE


def _judge_change(
    review: Review, known: register.Known | None, space: AddressSpace, verdict: Verdict
) -> None:
    try:
        pool = _parsed(review.new)
    except errors.InvalidInput as error:
        verdict.refuse(error)
        return
    change = _Change(review, space, known, pool, _before(review, known))
    _judge_lost(change, verdict)
    _judge_reserved(change, verdict)
    _judge_immutable(change, verdict)
    _judge_overlaps(change, verdict)
    _judge_families(change, verdict)
    for at, message in oddities.of(pool, _entries(change.before)):
        verdict.warn(message, at)


def _parsed(manifest: object_reader.Json | None) -> podippool.PodIPPool:
    """The pool of a manifest; one without any family is legal in Kubernetes."""
    if manifest is None or manifest.get("kind") != podippool.KIND:
        message = f"a {podippool.KIND} is expected"
        raise errors.InvalidInput.for_field("kind", "unsupported_kind", message)
    conversion.check_written_shape(manifest)
    try:
        return podippool.parse_document(manifest, strict=False)[0]
    except errors.InvalidInput as error:
        if [(each.field, each.code) for each in error.problems] != [("spec", "required")]:
            raise
        return podippool.PodIPPool(manifest["metadata"]["name"], {})


def _before(review: Review, known: register.Known | None) -> podippool.PodIPPool | None:
    """The old object; the register's word for it when it cannot be read."""
    if review.operation == reviews.CREATE:
        return None
    try:
        return _parsed(review.old)
    except errors.InvalidInput:
        return manifests.to_manifest(known.pool) if known else None


def _entries(pool: podippool.PodIPPool | None) -> Entries:
    families = pool.families.values() if pool else ()
    return {entry.cidr: entry for family in families for entry in family.cidrs}


def _judge_lost(change: _Change, verdict: Verdict) -> None:
    """CIDRs that the pool loses while blocks of them are in use."""
    before, after = _entries(change.before), _entries(change.pool)
    known = change.known.cidrs if change.known else {}
    if change.is_update:
        for cidr in before.keys() - after.keys() - known.keys():
            verdict.warn(f"the register does not know {cidr}; whether it is in use is unknown")
        known = {cidr: row for cidr, row in known.items() if cidr in before}
    lost = [row for cidr, row in known.items() if cidr not in after]
    for row, _, used in register.in_use([(row, None) for row in lost]):
        if change.is_update:
            verdict.refuse(errors.CIDRInUse(f"{row.cidr} cannot be removed: it has {used}"))
        else:
            verdict.warn(f"{row.cidr} stays an orphan of this pool: it has {used}")


def _judge_reserved(change: _Change, verdict: Verdict) -> None:
    """Ranges that become reserved while blocks are in use; those that a version cannot hold."""
    if change.known is None:
        return
    before, known = _entries(change.before), change.known.cidrs
    fresh = [
        (known[cidr], span)
        for cidr, entry in _entries(change.pool).items()
        if cidr in known
        for span in entry.reserved
        if cidr not in before or span not in before[cidr].reserved
    ]
    for _, span, used in register.in_use(fresh):
        verdict.warn(f"{span} is reserved while in use, until it is released: {used}")
    if change.known.ranges and change.review.version == V2ALPHA1:
        verdict.warn(
            f"v2alpha1 cannot hold the {change.known.ranges} reserved ranges of this pool:"
            " they are lost unless it is written in v2"
        )


def _judge_immutable(change: _Change, verdict: Verdict) -> None:
    """Mask sizes, allowFirstIP and allowLastIP never change as long as there is the object.

    A new object of the same name may differ, unless blocks of the old one are in use.
    """
    before = change.before
    if not change.is_update and change.known:
        before = manifests.to_manifest(change.known.pool)
    if before is None:
        return
    differing = list(_differing(before, change.pool))
    if not differing:
        return
    if change.is_update or (change.known and register.in_use(change.known.places)):
        problems = [
            errors.FieldProblem(at, errors.ImmutableInUse.code, text) for at, text in differing
        ]
        verdict.refuse(errors.ImmutableInUse(problems=problems))
    else:
        for at, text in differing:
            verdict.warn(f"the register has it otherwise: {text}", at)


def _differing(
    before: podippool.PodIPPool, after: podippool.PodIPPool
) -> Iterator[tuple[str, str]]:
    for number in sorted(before.families.keys() & after.families.keys()):
        old, new = before.families[number].mask_size, after.families[number].mask_size
        if old != new:
            yield (
                f"spec.ipv{number}.maskSize",
                f"cannot change IPv{number} mask size {old} to {new}",
            )
    for name, old_flag, new_flag in (
        ("allowFirstIP", before.allow_first_ip, after.allow_first_ip),
        ("allowLastIP", before.allow_last_ip, after.allow_last_ip),
    ):
        if old_flag != new_flag:
            yield f"spec.{name}", f"cannot change {name} of a pool"


def _judge_overlaps(change: _Change, verdict: Verdict) -> None:
    """Refused is what this request adds; what overlapped before is told."""
    before, after = _entries(change.before), list(_entries(change.pool))
    own = change.known.pool if change.known else None
    # What is added comes first: not all overlaps are told.
    after.sort(key=lambda cidr: cidr in before)
    name = change.review.name
    for overlap in register.overlaps(after, space=change.space, name=name, own=own):
        if overlap.wanted in before:
            verdict.warn(str(overlap))
        else:
            verdict.refuse(errors.CIDROverlap(str(overlap)))
    added = [cidr for cidr in after if cidr not in before]
    for overlap in register.overlaps_elsewhere(added, space_id=change.space.pk):
        verdict.warn(str(overlap))


def _judge_families(change: _Change, verdict: Verdict) -> None:
    has = change.pool.families.keys()
    if not has:
        verdict.warn("neither ipv4 nor ipv6: no pod gets an address of this pool", "spec")
        return
    if change.before and change.before.families.keys() <= has:
        return
    others = register.families_of_others(change.space.cluster_id, change.review.name)
    for family in sorted(others - has):
        verdict.warn(f"no ipv{family}, which other pools of the cluster have", "spec")
