"""Rules between the subnets, gateways and reservations of a new network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from claims.core.networks import udn
from claims.core.networks.udn import UDN
from pools.core import addresses, object_reader

MAX_RESERVED, MAX_INFRASTRUCTURE, MAX_LAYER3 = 25, 4, 400


@dataclass(frozen=True)
class Lists:
    """Networks and addresses of a request body, each with its path, and the rules between them."""

    body: object_reader.Fields
    subnets: list[tuple[str, addresses.Network]]
    gateways: list[tuple[str, addresses.Address]]
    reserved: list[tuple[str, addresses.Network]]
    infrastructure: list[tuple[str, addresses.Network]]
    join: list[tuple[str, addresses.Network]]

    def check(self, network: UDN) -> None:
        self._check_subnets(network)
        self._check_gateways()
        for name, listed, most in (
            ("reserved_subnets", self.reserved, MAX_RESERVED),
            ("infrastructure_subnets", self.infrastructure, MAX_INFRASTRUCTURE),
        ):
            _check_number(self.body, name, most)
            for path, cidr in listed:
                self._check_inside(path, cidr)
        _check_apart(self.body.report, [*self.reserved, *self.infrastructure])
        _check_number(self.body, "join_subnets", 2)
        _check_families(self.body.report, self.join)
        _check_apart(self.body.report, [*self.subnets, *self.join])

    def _check_subnets(self, network: UDN) -> None:
        if network.topology == udn.LAYER3:
            _check_number(self.body, "subnets", MAX_LAYER3)
            return
        _check_number(self.body, "subnets", 2)
        _check_families(self.body.report, self.subnets)
        for path, subnet in self.subnets:
            if network.role == udn.PRIMARY and subnet.num_addresses < 4:
                message = f"{subnet} has no room for a gateway and a VM"
                self.body.report.add(path, "subnet_too_small", message, str(subnet))

    def _check_gateways(self) -> None:
        report = self.body.report
        _check_number(self.body, "default_gateways", 2)
        _check_families(report, self.gateways, code="gateway_conflict")
        for path, gateway in self.gateways:
            for code, message in self._gateway_problems(gateway):
                report.add(path, code, message, str(gateway))
        missing = {subnet.version for _, subnet in self.subnets} - {
            gateway.version for _, gateway in self.gateways
        }
        if self.gateways and missing:
            message = (
                f"one gateway for each family is required; that of IPv{min(missing)} is missing"
            )
            report.add("default_gateways", "gateway_conflict", message)

    def _gateway_problems(self, gateway: addresses.Address) -> Iterator[tuple[str, str]]:
        """Yield (code, message) of the first rule that the gateway violates."""
        holding = [subnet for _, subnet in self.subnets if gateway in subnet]
        if not self.subnets:
            return  # the missing subnets are reported elsewhere
        if all(subnet.version != gateway.version for _, subnet in self.subnets):
            yield (
                "mixed_family",
                f"{gateway} is an IPv{gateway.version} address, and no subnet is IPv{gateway.version}",
            )
        elif not holding:
            message = f"{gateway} is in none of the subnets"
            yield "gateway_conflict", message
        elif _is_edge(gateway, holding[0]):
            message = (
                f"{gateway} is the first or last address of {holding[0]}, which no host can have"
            )
            yield "gateway_conflict", message
        elif self.infrastructure and not any(
            gateway in infrastructure_subnet for _, infrastructure_subnet in self.infrastructure
        ):
            yield "gateway_conflict", f"{gateway} must be in one of the infrastructure subnets"

    def _check_inside(self, path: str, cidr: addresses.Network) -> None:
        same = [subnet for _, subnet in self.subnets if subnet.version == cidr.version]
        report = self.body.report
        if self.subnets and not same:
            message = f"{cidr} is an IPv{cidr.version} network, and no subnet is IPv{cidr.version}"
            report.add(path, "mixed_family", message, str(cidr))
        elif not any(_holds(subnet, cidr) for subnet in same):
            message = f"{cidr} is in none of the subnets"
            report.add(path, "range_outside_cidr", message, str(cidr))


def _holds(outer: addresses.Network, inner: addresses.Network) -> bool:
    return inner[0] in outer and inner.prefixlen >= outer.prefixlen


def _is_edge(address: addresses.Address, network: addresses.Network) -> bool:
    edges = {network.network_address}
    if network.version == 4:
        edges.add(network.broadcast_address)
    return network.num_addresses > 2 and address in edges


def _check_number(body: object_reader.Fields, name: str, most: int) -> None:
    listed = body.data.get(name)
    if isinstance(listed, list) and len(listed) > most:
        message = f"{len(listed)} values; at most {most} are allowed"
        body.report.add(body.path(name), "too_many", message)


def _check_families(
    report: object_reader.ProblemReport,
    listed: list[tuple[str, Any]],
    *,
    code: str = "one_per_family",
) -> None:
    first_by_family: dict[int, Any] = {}
    for path, member in listed:
        if member.version in first_by_family:
            message = f"only one of each family is allowed: {first_by_family[member.version]} is IPv{member.version} too"
            report.add(path, code, message, str(member))
        first_by_family.setdefault(member.version, member)


def _check_apart(
    report: object_reader.ProblemReport, listed: list[tuple[str, addresses.Network]]
) -> None:
    """Report overlaps; in order of addresses, a network comes before those that it contains."""
    outer: addresses.Network | None = None
    for path, cidr in sorted(listed, key=lambda e: (e[1].version, int(e[1][0]), e[1].prefixlen)):
        if outer is not None and outer.version == cidr.version and cidr[0] in outer:
            report.add(path, "cidr_overlap", f"{cidr} overlaps {outer}", str(cidr))
        else:
            outer = cidr
