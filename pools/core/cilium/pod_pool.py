"""From which pool a pod gets its addresses (pkg/ipam/metadata/manager.go of Cilium).

For each IP family apart, the first of these that says something: an annotation of the pod, one of
its namespace, the selectors of the pools, the default pool. Cilium looks only when the pod is
created: a later change of an annotation, a label or a selector has no effect on its addresses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from pools.core import errors
from pools.core.cilium import podippool
from pools.core.kubernetes import label_selector

ANNOTATION = "ipam.cilium.io/ip-pool"
FAMILY_ANNOTATION = {4: "ipam.cilium.io/ipv4-pool", 6: "ipam.cilium.io/ipv6-pool"}
REQUIRE_MATCH = "ipam.cilium.io/require-pool-match"
NAME_LABEL = "io.kubernetes.pod.name"
NAMESPACE_LABEL = "io.kubernetes.pod.namespace"
DEFAULT = "default"
ONLY_AT_CREATION = (
    "Cilium chooses when the pod is created; later changes of annotations, labels or selectors "
    "do not move a running pod."
)


@dataclass(frozen=True)
class Marked:
    """What is on a pod or on its namespace; None is what is not known, and `note` says why."""

    name: str
    labels: Mapping[str, str] | None = field(default_factory=dict)
    annotations: Mapping[str, str] | None = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class PoolChoice:
    """The pool of one family, and why, as sentences in the order in which it was decided.

    `pool` is "" when the pod gets no address; `problem` says what is wrong, also with a pool that
    was chosen and cannot serve it ("" when all is well). `unknown` lists what was not read and may
    decide otherwise: then there is no answer, `pool` is "" too.
    """

    family: int
    pool: str
    reasons: tuple[str, ...]
    problem: str = ""
    unknown: tuple[str, ...] = ()


def choose(
    pod: Marked,
    namespace: Marked,
    pools: Iterable[podippool.PodIPPool],
    *,
    default: str = DEFAULT,
    families: Collection[int] = (4, 6),
) -> list[PoolChoice]:
    """The choice for each family; `default` is the node's `ipam-default-ip-pool`."""
    pools_by_name = {pool.name: pool for pool in pools}
    choices = []
    for family in sorted(families):
        unknown: dict[str, str] = {}
        choice = _choose(family, pod, namespace, pools_by_name, default, unknown)
        choices.append(_unanswered(choice, unknown) if unknown else choice)
    return choices


def _unanswered(choice: PoolChoice, unknown: Mapping[str, str]) -> PoolChoice:
    """The choice as what it would be if there were nothing in what is not known."""
    would = f'the pool "{choice.pool}"' if choice.pool else "no pool"
    parts = " and ".join(unknown)
    whys = "; ".join(dict.fromkeys(why for why in unknown.values() if why))
    return PoolChoice(
        choice.family,
        "",
        (*choice.reasons, f"If there is nothing in {parts} about it, it is {would}."),
        f"unknown, because {parts} were not read" + (f": {whys}" if whys else ""),
        tuple(unknown),
    )


def _choose(
    family: int,
    pod: Marked,
    namespace: Marked,
    pools: dict[str, podippool.PodIPPool],
    default: str,
    unknown: dict[str, str],
) -> PoolChoice:
    reasons: list[str] = []
    for what, marked in (("pod", pod), ("namespace", namespace)):
        if marked.annotations is None:
            unknown[f"the annotations of the {what}"] = marked.note
            reasons.append(f"The annotations of the {what} are not known.")
            continue
        key, pool = _annotated(marked.annotations, family)
        if pool:
            reasons.append(f"The {what} says {key}={pool}.")
            return PoolChoice(family, pool, tuple(reasons), _cannot_serve(pools, pool, family))
        reasons.append(f"The {what} has no annotation for a pool of IPv{family}.")
    matching = _matching(family, pod, namespace, pools.values(), reasons, unknown)
    if len(matching) > 1:
        names = ", ".join(matching)
        problem = f"the selectors of several IPv{family} pools match the pod: {names}"
        return PoolChoice(family, "", tuple(reasons), problem)
    if matching:
        return PoolChoice(family, matching[0], tuple(reasons))
    if required := _requires_match(pod, namespace):
        reasons.append(f"The {required} says {REQUIRE_MATCH}=true.")
        problem = f"the pod gets no IPv{family} address until it matches a pool"
        return PoolChoice(family, "", tuple(reasons), problem)
    reasons.append(f'So it is the default pool, "{default}".')
    return PoolChoice(family, default, tuple(reasons), _cannot_serve(pools, default, family))


def _annotated(annotations: Mapping[str, str], family: int) -> tuple[str, str]:
    for key in (FAMILY_ANNOTATION[family], ANNOTATION):
        if pool := annotations.get(key, ""):
            return key, pool
    return "", ""


def _matching(
    family: int,
    pod: Marked,
    namespace: Marked,
    pools: Iterable[podippool.PodIPPool],
    reasons: list[str],
    unknown: dict[str, str],
) -> list[str]:
    name_labels = {NAME_LABEL: pod.name, NAMESPACE_LABEL: namespace.name}
    labels = None if pod.labels is None else {**pod.labels, **name_labels}
    matching = []
    for pool in sorted(pools, key=lambda pool: pool.name):
        if family not in pool.families:
            continue
        try:
            matched, unread = _matched_by(pool, labels, namespace.labels)
            for what in unread:
                marked = pod if what == "pod" else namespace
                unknown[f"the labels of the {what}"] = marked.note
                reasons.append(
                    f'Whether the {what}Selector of the pool "{pool.name}" matches is not known.'
                )
            if matched and not unread:
                reasons.append(f'The {matched} of the pool "{pool.name}" matches.')
                matching.append(pool.name)
        except errors.InvalidInput as error:
            reasons.append(f'A selector of the pool "{pool.name}" cannot be read: {error}.')
    if not matching:
        matches = "is known to match" if unknown else "matches"
        reasons.append(f"No selector of an IPv{family} pool {matches}.")
    return matching


def _matched_by(
    pool: podippool.PodIPPool, pod: Mapping[str, str] | None, namespace: Mapping[str, str] | None
) -> tuple[str, list[str]]:
    """Which selectors match, and whose labels are not known; "" and none when one does not match."""
    names, unread = [], []
    for what, selector, labels in (
        ("pod", pool.pod_selector, pod),
        ("namespace", pool.namespace_selector, namespace),
    ):
        if selector is None:
            continue
        parsed = label_selector.parse(selector, field=f"{what}Selector")
        if labels is None:
            unread.append(what)
        elif not parsed.matches(labels):
            return "", []
        names.append(f"{what}Selector")
    return " and the ".join(names), unread


def _requires_match(pod: Marked, namespace: Marked) -> str:
    for what, marked in (("pod", pod), ("namespace", namespace)):
        if (marked.annotations or {}).get(REQUIRE_MATCH) == "true":
            return what
    return ""


def _cannot_serve(pools: dict[str, podippool.PodIPPool], name: str, family: int) -> str:
    if name not in pools:
        return f'there is no pool "{name}": the pod waits for an IPv{family} address'
    if family not in pools[name].families:
        return f'the pool "{name}" has no IPv{family} CIDRs: the pod waits for an address'
    return ""
