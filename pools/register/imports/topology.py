"""Which prefixes become containers, which become pools, and in which pool each address lies.

A prefix with the status container, or with another prefix or a registered CIDR inside, becomes a container, and one
that the register has as a container stays one; every other one becomes a pool. A prefix inside a registered CIDR is in
conflict, and so is an address directly in a container, because no pool has it. All rows of an import are looked at
together, with the CIDRs that the register has already: it is arithmetic on sorted spans, in memory.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pools.core import errors
from pools.core.addresses import LONGEST_PREFIX
from pools.core.register_import import parsing
from pools.core.register_import.parsing import CONTAINER, HELD, POOL, RESERVED
from pools.models import Cluster, Container, PoolCIDR, RegisterImport, RegisterRow
from pools.register.imports import left_out
from pools.register.imports.places import Level, Place, Space, edge_name, edges, judge

AMBIGUOUS = "ambiguous_cluster"
AMBIGUOUS_VRF = "ambiguous_vrf"
# By the code of a tie, the field that a person chooses one of its candidates for.
CHOSEN_FIELDS = {AMBIGUOUS: "cluster", AMBIGUOUS_VRF: "vrf"}


class Destinations:
    """Which cluster and address space a row belongs to, by its column, its VRF, its site, or the default.

    `others` are the clusters of sites, in which an address lies that does not say its site itself; so are those of the
    import's prefixes.
    """

    def __init__(self, register_import: RegisterImport) -> None:
        self.register_import = register_import
        self._ids = dict(Cluster.objects.values_list("name", "pk"))
        self.names = {pk: name for name, pk in self._ids.items()}
        mapping = register_import.mapping
        self.vrfs: Mapping[str, int] = {
            parsing.read_vrf(name): cluster for name, cluster in mapping.get("vrf", {}).items()
        }
        self._sites: Mapping[str, int] = mapping.get("site", {})
        self.others = sorted(self.names.keys() & {*self._sites.values()})

    def is_decided(self, row: RegisterRow) -> bool:
        """Return True if the VRF or the site of a row says its cluster; the site "" stands for rows without one."""
        site, vrf = row.texts.get("site", ""), parsing.read_vrf(row.texts.get("vrf", ""))
        return bool(site) or site in self._sites or vrf in self.vrfs

    def locate(self, row: parsing.ParsedRow) -> tuple[int, str]:
        """Return the id of the cluster and the name of the address space. Raises InvalidInput."""
        default = self.register_import.cluster_id
        cluster, space_name = self._sites.get(row.site, default), row.vrf
        if row.cluster:
            cluster = self._ids.get(row.cluster, 0)
        elif row.vrf in self.vrfs:
            cluster, space_name = self.vrfs[row.vrf], ""
        if cluster not in self.names:  # that of a mapping may have been removed since
            message = "there is no such cluster"
            raise errors.InvalidInput.for_field("cluster", "unknown_cluster", message, row.cluster)
        return cluster, space_name


def resolve(
    rows: Sequence[RegisterRow], destinations: Destinations | None = None
) -> list[RegisterRow]:
    """Set target, pool and the problems of position of all rows that could be parsed and are not skipped.

    With `destinations` an address that its own cluster has no prefix for is looked for in the others, and the rows are
    returned that follow from these: ranges that withhold what rows that are left out have in use.
    """
    prefixes, others, in_use = _sort_rows(rows)
    spaces = {*prefixes, *map(_space, others), *(use.space for use in in_use)}
    if destinations:
        destinations.others = sorted({*destinations.others, *_clusters(prefixes)} - {0})
        spaces |= {(cluster, *space[1:]) for cluster in destinations.others for space in spaces}
    for space, place in _registered(spaces):
        prefixes[space].append(place)
    containers = _registered_containers(spaces)
    levels = {space: _build(places, containers[space]) for space, places in prefixes.items()}
    located = [(row, _level_of(row, levels, destinations)) for row in others]
    seen: dict[tuple[Any, ...], RegisterRow] = {}
    for row, level in located:
        _locate(row, level)
        if row.target == HELD:
            _refuse_duplicate(seen, (*_space(row), row.first), row)
    _compare_ranges([row for row, _ in located if row.target == RESERVED and not row.verdict])
    if destinations is None:
        return []
    inside = (row for level in levels.values() for row in level.inside)
    bad = (row for row, _ in located if row.verdict in _BAD)
    in_use += [use for row in (*inside, *bad) for use in left_out.uses(row)]
    in_use += [use for row in rows for use in left_out.utilized(row)]
    in_use = [place for use in in_use for place in _in_clusters(use, levels, destinations)]
    in_use += left_out.of_other_holders(located, destinations.register_import)
    number = max((row.number for row in rows), default=0) + 1
    return left_out.withhold(in_use, levels, located, number)


def _sort_rows(
    rows: Iterable[RegisterRow],
) -> tuple[dict[Space, list[Place]], list[RegisterRow], list[left_out.Use]]:
    """Return the places of the prefixes, the other rows, and what others that are left out have in use."""
    prefixes: dict[Space, list[Place]] = defaultdict(list)
    others: list[RegisterRow] = []
    in_use: list[left_out.Use] = []
    for row in rows:
        in_use += left_out.mentions(row)
        is_left_out = left_out.is_left_out(row)
        if row.kind == "prefix":
            for version, first, last in left_out.spans(row):
                place = Place(first, last, row, left_out=is_left_out)
                prefixes[_space(row, version)].append(place)
        elif is_left_out:
            in_use += left_out.uses(row)
        else:
            others.append(row)
    return prefixes, others, in_use


_BAD = {"invalid", "conflict"}


def _in_clusters(
    use: left_out.Use, levels: Mapping[Space, Level], destinations: Destinations
) -> Iterator[left_out.Use]:
    """Yield the use in each cluster that might have the address if the row were imported."""
    own, name, version = use.space
    if vrfs := _vrfs(use.row, levels, destinations, version, use.first, use.last):
        yield from (replace(use, space=space) for space in vrfs.values())
        return
    # A row that names an unknown cluster may be of any.
    others = destinations.others if own else {cluster for cluster, _name, _version in levels}
    spaces = [(cluster, name, version) for cluster in dict.fromkeys((own, *others))]
    found = [
        space
        for space in spaces
        if space in levels and levels[space].pools_between(use.first, use.last)
    ]
    if (own and use.row.texts.get("cluster")) or (
        use.space in found and destinations.is_decided(use.row)
    ):
        found = [use.space]
    yield from (replace(use, space=space) for space in found or [use.space])


def _level_of(
    row: RegisterRow, levels: Mapping[Space, Level], destinations: Destinations | None
) -> Level:
    """Return the level of the row's address space, or move the row to the other cluster that has its prefix.

    A row that does not say its cluster and lies in prefixes of several is in conflict, which names them; so is one
    without a VRF that only prefixes of VRFs have.
    """
    own = levels.get(_space(row)) or Level()
    number = int(row.first)
    if vrfs := _vrfs(row, levels, destinations, row.first.version, number, number):
        message = (
            f"no prefix outside of a VRF has {_span(row)}, and the row names no VRF:"
            f" choose {' or '.join(vrfs)}"
        )
        judge(row, "conflict", AMBIGUOUS_VRF, message, candidates=[*vrfs])
        return levels[next(iter(vrfs.values()))]
    if destinations is None or row.texts.get("cluster"):
        return own
    space = _space(row)[1:]
    options = {row.cluster_id: own}
    options |= {pk: levels[pk, *space] for pk in destinations.others if (pk, *space) in levels}
    places = {pk: level.innermost(int(row.first)) for pk, level in options.items()}
    for kind in ("is_pool", "was_pool"):
        found = [pk for pk, place in places.items() if place is not None and getattr(place, kind)]
        if not found:
            continue
        if len(found) > 1 and not (row.cluster_id in found and destinations.is_decided(row)):
            names = sorted(destinations.names[pk or 0] for pk in found)
            message = (
                f"prefixes of several clusters have {_span(row)}, and the row does not say which:"
                f" choose {' or '.join(names)}"
            )
            judge(row, "conflict", AMBIGUOUS, message, candidates=names)
        row.cluster_id = row.cluster_id if row.cluster_id in found else found[0]
        return options[row.cluster_id]
    return own


def _vrfs(
    row: RegisterRow,
    levels: Mapping[Space, Level],
    destinations: Destinations | None,
    version: int,
    first: int,
    last: int,
) -> dict[str, Space]:
    """Return the spaces of the VRFs of the import that have a row which names none, if no prefix outside of them has it."""
    own = row.cluster_id or 0
    is_decided = bool(row.space_name or row.texts.get("vrf"))  # also by the name of the global one
    others = destinations.others if destinations and not row.texts.get("cluster") else []
    outside = (levels.get((cluster, "", version)) for cluster in (own, *others))
    places = (level.innermost(first) for level in outside if level)
    if is_decided or row.kind == "prefix" or any(place and not _vrf(place) for place in places):
        return {}
    spaces = {space[1]: space for space in levels if space[1] and space[::2] == (own, version)}
    vrfs = destinations.vrfs if destinations else {}
    spaces |= {name: (cluster, "", version) for name, cluster in vrfs.items()}
    return {
        name: space
        for name, space in sorted(spaces.items())
        if any(
            space[1] or _vrf(place) == name
            for place in levels.get(space, Level()).pools_between(first, last)
        )
    }


def _vrf(place: Place) -> str:
    """Return the VRF that the row of a prefix names."""
    return parsing.read_vrf(place.row.texts.get("vrf", "")) if place.row else ""


def _space(row: RegisterRow, version: int = 0) -> Space:
    return row.cluster_id or 0, row.space_name, version or row.first.version


def _registered(spaces: Iterable[Space]) -> Iterator[tuple[Space, Place]]:
    """Yield the CIDRs that the pools of these address spaces have."""
    clusters = _clusters(spaces)
    cidrs = PoolCIDR.objects.filter(space__cluster__in=clusters).select_related("pool", "space")
    for cidr in cidrs:
        space = (cidr.space.cluster_id, cidr.space.name, cidr.cidr.version)
        if space in spaces:
            first, last = cidr.cidr.network_address, cidr.cidr.broadcast_address
            yield space, Place(int(first), int(last), cidr=cidr)


def _clusters(spaces: Iterable[Space]) -> set[int]:
    return {cluster for cluster, _, _ in spaces}


def _registered_containers(spaces: Iterable[Space]) -> dict[Space, set[tuple[int, int]]]:
    """Return the spans of the containers that the register has in these address spaces."""
    containers: dict[Space, set[tuple[int, int]]] = defaultdict(set)
    rows = Container.objects.filter(space__cluster__in=_clusters(spaces))
    for cluster, name, cidr in rows.values_list("space__cluster", "space__name", "cidr"):
        span = int(cidr.network_address), int(cidr.broadcast_address)
        containers[cluster, name, cidr.version].add(span)
    return containers


def _build(places: list[Place], containers: Collection[tuple[int, int]]) -> Level:
    """Sort places into a tree, by a walk that keeps the places around the present one on a stack."""
    # A registered CIDR comes before the row that names it again, and one that is left out is the last.
    places.sort(key=lambda place: (place.first, -place.last, place.cidr is None, place.left_out))
    stack: list[Place] = []
    distinct: list[Place] = []
    inside: list[RegisterRow] = []
    for place in places:
        while stack and stack[-1].last < place.first:
            stack.pop()
        around = stack[-1] if stack else None
        if around is None or _joins(around, place):
            stack.append(place)
            distinct.append(place)
        elif (inner := _row_inside(around, place)) is not None:
            inside.append(inner)
    for place in distinct:
        if place.row is not None:
            _decide(place, place.row, containers)
    return Level(distinct, inside)


def _decide(place: Place, row: RegisterRow, containers: Collection[tuple[int, int]]) -> None:
    """Decide whether the prefix of a row becomes a container or a pool."""
    if not place.left_out:
        has_parts = place.has_children or (place.first, place.last) in containers
        place.was_pool = has_parts and row.target != CONTAINER and place.cidr is None
        is_container = has_parts or row.target == CONTAINER
        row.target = CONTAINER if is_container and place.cidr is None else row.target or POOL
        row.pool_cidr_id = place.cidr.pk if place.cidr else None
        row.pool_row = None
    # The status of every pool is no detail; that of a container goes back to NetBox as it came.
    if row.target == POOL and row.details.get("status") == "active":
        del row.details["status"]


def _joins(around: Place, place: Place) -> bool:
    """Put a place into the one around it; return False for one that is no place of its own."""
    if around.span == place.span:
        _meet_equal(around, place)
        return False
    if around.cidr is not None and place.row is not None:
        if not place.left_out:
            message = _overlap_message(around.cidr, place.name)
            judge(place.row, "conflict", "cidr_overlap", message)
        return False
    around.has_children = True
    place.parent = around
    return True


def _overlap_message(cidr: PoolCIDR, prefix: str) -> str:
    return (
        f"{prefix} lies in {cidr} of the pool {cidr.pool}, and one CIDR cannot be in another: replace {cidr} in the"
        f" pool by CIDRs beside {prefix} and import again, or leave this row out"
    )


def _meet_equal(around: Place, place: Place) -> None:
    """Note that a prefix is named a second time: by the register and a row, or by two rows."""
    if place.row is None or place.left_out:
        return
    if around.row is not None:
        if _gives_way(around.row):
            around.row, place.row = place.row, around.row
        message = f"row {around.row.line} of the import has the prefix {place.name} already"
        verdict = "unchanged" if _gives_way(place.row) else "conflict"
        judge(place.row, verdict, "duplicate_in_file", message)
    else:
        around.row = place.row


def _row_inside(around: Place, place: Place) -> RegisterRow | None:
    """Return the row of a prefix inside a CIDR of the register; None if its addresses need not be in use."""
    is_inside = around.cidr is not None and around.span != place.span
    return place.row if is_inside and place.row and not _gives_way(place.row) else None


def _gives_way(row: RegisterRow) -> bool:
    """Return True for the prefix above a table of addresses, and for an aggregate: another row may have it, too."""
    return "heading" in row.texts or "rir" in row.texts


def _locate(row: RegisterRow, level: Level) -> None:
    """Find the pool of an address or a range, and refuse what no pool can hold."""
    row.pool_row = row.pool_cidr_id = None
    place = level.innermost(int(row.first))
    if place is None:
        message = f"no prefix of the import and no pool of the register has {_span(row)}"
        judge(row, "invalid", "outside_every_prefix", message)
    elif place.left_out and place.row is not None:
        row.pool_row = place.row.number  # which refuses the row, as one of a prefix in conflict
    elif not place.is_pool:
        if place.was_pool and row.target == HELD:
            _check_edges(row, place)
        message = (
            f"{_span(row)} lies in the network container {place.name} beside the prefixes inside it, and no pool"
            " has it: add the prefix of its subnet to the source, or to a file, and import again"
        )
        judge(row, "conflict", "in_container", message)
    elif int(row.last) > place.last:
        message = f"the range does not lie in one prefix: {place.name} ends before {row.last}"
        judge(row, "invalid", "range_outside_cidr", message)
    else:
        row.pool_row = place.row.number if place.row and place.cidr is None else None
        row.pool_cidr_id = place.cidr.pk if place.cidr else None
        row.pool_name = place.pool_name
        _check_pool(row, place)
        if row.target == HELD:
            _check_edges(row, place)


def _span(row: RegisterRow) -> str:
    return str(row.first) if row.first == row.last else f"{row.first}-{row.last}"


def _check_pool(row: RegisterRow, leaf: Place) -> None:
    if leaf.cidr is None:
        return
    pool, size = leaf.cidr.pool, leaf.cidr.pool.mask_size(row.first.version)
    if leaf.cidr.closed:
        message = (
            f"{leaf.cidr} of the pool {pool} is being removed: nothing new is allocated from it"
        )
        judge(row, "conflict", "cidr_closed", message)
    elif row.target == HELD and size != LONGEST_PREFIX[row.first.version]:
        message = f"the pool {pool} allocates blocks of /{size}, no single addresses"
        judge(row, "conflict", "mask_size", message)


def _check_edges(row: RegisterRow, place: Place) -> None:
    """Refuse what no host can have: network and broadcast address, and IPv6's subnet-router anycast address."""
    pool = place.cidr.pool if place.cidr else None
    allowed = place.row is not None and pool is None and "is_pool" in place.row.details
    number = int(row.first)
    if allowed or number not in edges(place, row.first.version):
        return
    is_first = number == place.first
    if not (pool and (pool.allow_first_ip if is_first else pool.allow_last_ip)):
        code = "network_address" if is_first else "broadcast_address"
        name = edge_name(place, number, row.first.version)
        judge(row, "invalid", code, f"{row.first} is the {name} of {place.name}")


# NetBox's roles of addresses that several interfaces have.
_SHARED_ROLES = {"anycast", "vip", "vrrp", "hsrp", "glbp", "carp"}


def _refuse_duplicate(
    seen: dict[tuple[Any, ...], RegisterRow], key: tuple[Any, ...], row: RegisterRow
) -> None:
    if row.verdict:
        return
    earlier = seen.setdefault(key, row)
    roles = {earlier.details.get("role", ""), row.details.get("role", "")}
    if earlier is not row and roles <= _SHARED_ROLES:
        message = f"several have {row.first} as {row.details['role']}: it is held once, for {earlier.holder_id}"
        judge(row, "unchanged", "shared_address", message)
    elif earlier is not row:
        where = f"line {earlier.line}" + (f" of {earlier.file}" if earlier.file else "")
        message = f"{row.first} is in the import already, in {where}"
        judge(row, "conflict", "duplicate_in_file", message)


def _compare_ranges(rows: list[RegisterRow]) -> None:
    """Leave out reserved ranges inside others of the import, and refuse those that overlap in part."""
    by_space: dict[Space, list[RegisterRow]] = defaultdict(list)
    for row in rows:
        by_space[_space(row)].append(row)
    for same in by_space.values():
        same.sort(key=lambda row: (int(row.first), -int(row.last)))
        around = same[0]
        for row in same[1:]:
            if int(row.last) <= int(around.last):
                message = f"the reserved range {around.first}-{around.last} of the import has it"
                judge(row, "unchanged", "inside_range", message)
            elif int(row.first) <= int(around.last):
                message = f"overlaps the reserved range {around.first}-{around.last} of the import"
                judge(row, "conflict", "ranges_overlap", message)
            else:
                around = row
