"""The pool from which a pod gets its addresses (pkg/ipam/metadata/manager.go of Cilium).

For each IP family, the first match decides: an annotation of the pod, an annotation of its namespace,
the selectors of the pools, the default pool. Cilium chooses when the pod is created: a later change of
an annotation, a label or a selector has no effect on its addresses.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

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
class ObjectMetadata:
    """Metadata of a pod or a namespace; None means unknown, and `note` says why."""

    name: str
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    note: str = ""


@dataclass(frozen=True)
class PoolChoice:
    """The pool of one family, and the reasons as sentences in the order of the decision.

    `pool` is "" if the pod gets no address. `problem` is "" without a problem; a chosen pool that
    cannot serve the pod is a problem too. `unknown` lists metadata that was not read and can change
    the result; then `pool` is "".
    """

    family: int
    pool: str
    reasons: tuple[str, ...]
    problem: str = ""
    unknown: tuple[str, ...] = ()


def choose(
    pod: ObjectMetadata,
    namespace: ObjectMetadata,
    pools: Iterable[podippool.PodIPPool],
    *,
    default: str = DEFAULT,
    families: Collection[int] = (4, 6),
) -> list[PoolChoice]:
    """Return the choice for each family; `default` is the node's `ipam-default-ip-pool`."""
    pools_by_name = {pool.name: pool for pool in pools}
    choices = []
    for family in sorted(families):
        unknown: dict[str, str] = {}
        choice = _choose(family, pod, namespace, pools_by_name, default, unknown)
        choices.append(_mark_unknown(choice, unknown) if unknown else choice)
    return choices


def _mark_unknown(choice: PoolChoice, unknown: Mapping[str, str]) -> PoolChoice:
    """Return an undecided choice that names the result for empty unknown metadata."""
    expected = f'the pool "{choice.pool}"' if choice.pool else "no pool"
    parts = " and ".join(unknown)
    notes = "; ".join(dict.fromkeys(note for note in unknown.values() if note))
    return PoolChoice(
        choice.family,
        "",
        (*choice.reasons, f"If {parts} do not select a pool, the result is {expected}."),
        f"unknown, because {parts} were not read" + (f": {notes}" if notes else ""),
        tuple(unknown),
    )


def _choose(
    family: int,
    pod: ObjectMetadata,
    namespace: ObjectMetadata,
    pools: dict[str, podippool.PodIPPool],
    default: str,
    unknown: dict[str, str],
) -> PoolChoice:
    reasons: list[str] = []
    for kind, metadata in (("pod", pod), ("namespace", namespace)):
        if metadata.annotations is None:
            unknown[f"the annotations of the {kind}"] = metadata.note
            reasons.append(f"The annotations of the {kind} are unknown.")
            continue
        key, pool = _annotated_pool(metadata.annotations, family)
        if pool:
            reasons.append(f"The {kind} has the annotation {key}={pool}.")
            return PoolChoice(family, pool, tuple(reasons), _serving_problem(pools, pool, family))
        reasons.append(f"The {kind} has no annotation for a pool of IPv{family}.")
    matching = _matching_pools(family, pod, namespace, pools.values(), reasons, unknown)
    if len(matching) > 1:
        names = ", ".join(matching)
        problem = f"the selectors of several IPv{family} pools match the pod: {names}"
        return PoolChoice(family, "", tuple(reasons), problem)
    if matching:
        return PoolChoice(family, matching[0], tuple(reasons))
    if required := _find_match_requirement(pod, namespace):
        reasons.append(f"The {required} has the annotation {REQUIRE_MATCH}=true.")
        problem = f"the pod gets no IPv{family} address until it matches a pool"
        return PoolChoice(family, "", tuple(reasons), problem)
    reasons.append(f'The default pool "{default}" is used.')
    return PoolChoice(family, default, tuple(reasons), _serving_problem(pools, default, family))


def _annotated_pool(annotations: Mapping[str, str], family: int) -> tuple[str, str]:
    for key in (FAMILY_ANNOTATION[family], ANNOTATION):
        if pool := annotations.get(key, ""):
            return key, pool
    return "", ""


def _matching_pools(
    family: int,
    pod: ObjectMetadata,
    namespace: ObjectMetadata,
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
            matched, unread = _matching_selectors(pool, labels, namespace.labels)
            for kind in unread:
                metadata = pod if kind == "pod" else namespace
                unknown[f"the labels of the {kind}"] = metadata.note
                reasons.append(
                    f'It is unknown whether the {kind}Selector of the pool "{pool.name}" matches.'
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


def _matching_selectors(
    pool: podippool.PodIPPool, pod: Mapping[str, str] | None, namespace: Mapping[str, str] | None
) -> tuple[str, list[str]]:
    """Return the selectors that match, and the objects with unknown labels; ("", []) if one does not match."""
    names, unread = [], []
    for kind, selector, labels in (
        ("pod", pool.pod_selector, pod),
        ("namespace", pool.namespace_selector, namespace),
    ):
        if selector is None:
            continue
        parsed = label_selector.parse(selector, field=f"{kind}Selector")
        if labels is None:
            unread.append(kind)
        elif not parsed.matches(labels):
            return "", []
        names.append(f"{kind}Selector")
    return " and the ".join(names), unread


def _find_match_requirement(pod: ObjectMetadata, namespace: ObjectMetadata) -> str:
    for kind, metadata in (("pod", pod), ("namespace", namespace)):
        if (metadata.annotations or {}).get(REQUIRE_MATCH) == "true":
            return kind
    return ""


def _serving_problem(pools: dict[str, podippool.PodIPPool], name: str, family: int) -> str:
    if name not in pools:
        return f'there is no pool "{name}": the pod waits for an IPv{family} address'
    if family not in pools[name].families:
        return f'the pool "{name}" has no IPv{family} CIDRs: the pod waits for an address'
    return ""
