"""How IPAMClaims are called, and where two VMs or networks would get one name.

The enhancement proposal calls a claim `<vm>.<logical network name>`, which is often no name of an object
(`cluster_udn_prod` has underscores). kubevirt/ipam-extensions makes one of it (pkg/claims/claims.go,
ComposeKey), of the VM's name and what the VM calls its network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pools.core import errors

LONGEST = 253
SEPARATOR = "."
_RUN = re.compile("[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")

Pair = tuple[str, str]  # VM, network


def compose_key(vm: str, network: str) -> str:
    """The name of the claim of a VM on a network, as ipam-extensions makes it.

    In lower case, the runs of letters, digits and hyphens joined with dots, cut at 253 characters:
    the cut may leave a dot or a hyphen at the end, which no object can be called.
    """
    runs = _RUN.findall(f"{vm}{SEPARATOR}{network}".lower())
    return SEPARATOR.join(runs)[:LONGEST]


def spec_name(vm: str, network: str) -> str:
    """`<vm>.<logical network name>`, as the proposal writes it; not always a name that an object has."""
    return f"{vm}{SEPARATOR}{network}"


def is_of(name: str, vm: str, networks: Iterable[str] = ()) -> bool:
    """Whether a claim of this name may be the VM's: on one of the networks, or on any without them."""
    network_names = list(networks)
    if network_names:
        return any(
            name in {compose_key(vm, network), spec_name(vm, network)} for network in network_names
        )
    begin = compose_key(vm, "")
    return name.startswith(begin + SEPARATOR) or (len(name) == LONGEST and begin.startswith(name))


def vm_of(name: str, network: str) -> str:
    """The VM that a claim's name begins with, "" when there is none.

    A name that does not end with the network's ends, as ipam-extensions makes it, with what the VM
    calls its network, which has no dot; unless it was cut.
    """
    for ending in {SEPARATOR + network, SEPARATOR + compose_key("", network)}:
        if len(ending) > 1 and name.endswith(ending) and len(name) > len(ending):
            return name.removesuffix(ending)
    return name.rpartition(SEPARATOR)[0] if network and len(name) < LONGEST else ""


def readings(name: str) -> Iterator[Pair]:
    """All pairs that a name could be of, read as it stands: `a.b.c` is a and b.c, or a.b and c."""
    parts = name.split(SEPARATOR)
    for size in range(1, len(parts)):
        yield SEPARATOR.join(parts[:size]), SEPARATOR.join(parts[size:])


def collisions(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """The names that more than one of these pairs would get, each with its pairs in order."""
    pairs_by_name: dict[str, dict[Pair, None]] = {}
    for pair in pairs:
        pairs_by_name.setdefault(compose_key(*pair), {})[pair] = None
    return {
        name: list(name_pairs) for name, name_pairs in pairs_by_name.items() if len(name_pairs) > 1
    }


def problems(vm: str, network: str) -> list[errors.FieldProblem]:
    """What is odd about the name of this pair: name_impossible, name_cut, name_differs."""
    name = compose_key(vm, network)
    name_problems = []
    whole = SEPARATOR.join(_RUN.findall(f"{vm}{SEPARATOR}{network}".lower()))
    if not name or name[-1] in ".-":
        message = "what is left of the name after 253 characters ends with a dot or a hyphen"
        name_problems.append(
            errors.FieldProblem("name", "name_impossible", message, errors.shown(name))
        )
    if whole != name:
        message = f"the name is cut at {LONGEST} characters; another claim may get the same"
        name_problems.append(errors.FieldProblem("name", "name_cut", message, errors.shown(name)))
    elif name != spec_name(vm, network):
        message = f"an object cannot be called {spec_name(vm, network)}: it is {name}"
        name_problems.append(
            errors.FieldProblem("name", "name_differs", message, errors.shown(name))
        )
    return name_problems
