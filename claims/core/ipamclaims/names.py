"""Names of IPAMClaims, and collisions of names.

The enhancement proposal names a claim `<vm>.<logical network name>`, which is often not valid as the
name of an object (`cluster_udn_prod` has underscores). kubevirt/ipam-extensions composes a valid name
(pkg/claims/claims.go, ComposeKey) of the VM's name and the VM's own name for its network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pools.core import errors

MAX_LENGTH = 253
SEPARATOR = "."
_RUN = re.compile("[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")

Pair = tuple[str, str]  # VM, network


def compose_key(vm: str, network: str) -> str:
    """Return the name that ipam-extensions gives to the claim of a VM on a network.

    It consists of the runs of letters, digits and hyphens in lower case, joined with dots, cut at 253
    characters. A cut name may end with a dot or a hyphen, and then is not valid as an object name.
    """
    runs = _RUN.findall(f"{vm}{SEPARATOR}{network}".lower())
    return SEPARATOR.join(runs)[:MAX_LENGTH]


def spec_name(vm: str, network: str) -> str:
    """Return `<vm>.<logical network name>`, the name of the proposal; not always valid as an object name."""
    return f"{vm}{SEPARATOR}{network}"


def is_name_of(name: str, vm: str, networks: Iterable[str] = ()) -> bool:
    """Return True if a claim with this name may belong to the VM, on one of `networks` (empty: on any)."""
    network_names = list(networks)
    if network_names:
        return any(
            name in {compose_key(vm, network), spec_name(vm, network)} for network in network_names
        )
    begin = compose_key(vm, "")
    return name.startswith(begin + SEPARATOR) or (
        len(name) == MAX_LENGTH and begin.startswith(name)
    )


def vm_of(name: str, network: str) -> str:
    """Return the VM name at the beginning of a claim's name, or "".

    A name that does not end with the network's name ends with the VM's own name for the network, which
    has no dot (ipam-extensions), unless the name was cut.
    """
    for ending in {SEPARATOR + network, SEPARATOR + compose_key("", network)}:
        if len(ending) > 1 and name.endswith(ending) and len(name) > len(ending):
            return name.removesuffix(ending)
    return name.rpartition(SEPARATOR)[0] if network and len(name) < MAX_LENGTH else ""


def collisions(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """Return the names that several of these pairs would get, each with its pairs in order."""
    pairs_by_name: dict[str, dict[Pair, None]] = {}
    for pair in pairs:
        pairs_by_name.setdefault(compose_key(*pair), {})[pair] = None
    return {
        name: list(name_pairs) for name, name_pairs in pairs_by_name.items() if len(name_pairs) > 1
    }


def problems(vm: str, network: str) -> list[errors.FieldProblem]:
    """Return the problems of a pair's name: name_impossible, name_cut, name_differs."""
    name = compose_key(vm, network)
    name_problems = []
    whole = SEPARATOR.join(_RUN.findall(f"{vm}{SEPARATOR}{network}".lower()))
    if not name or name[-1] in ".-":
        message = "the name, cut at 253 characters, ends with a dot or a hyphen"
        name_problems.append(
            errors.FieldProblem("name", "name_impossible", message, errors.display_value(name))
        )
    if whole != name:
        message = f"the name is cut at {MAX_LENGTH} characters; another claim may get the same name"
        name_problems.append(
            errors.FieldProblem("name", "name_cut", message, errors.display_value(name))
        )
    elif name != spec_name(vm, network):
        message = f"{spec_name(vm, network)} is not valid as an object name; the name is {name}"
        name_problems.append(
            errors.FieldProblem("name", "name_differs", message, errors.display_value(name))
        )
    return name_problems
