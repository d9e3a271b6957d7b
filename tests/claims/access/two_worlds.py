"""What a VM owner sees, and beside it everything that they must not tell the existence of.

Whatever is foreign can be told by its text: its names contain `zulu`, its MAC and IP addresses and
its ids have beginnings of their own. Each foreign text has a twin of the same shape that is nowhere.
"""

import re
from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from knox.models import AuthToken

from claims.access import memberships
from claims.address_index import index
from claims.models import NAD, Decision, Entry, EntryEvent, IPAMClaim, IPPool, Network, Workload
from pools.models import Cluster, Now, Pool
from pools.models.history import SEQUENCE
from pools.platform import events
from pools.register import clusters, journal
from pools.register.allocator import allocation, requests
from tests import people
from tests.claims import worlds
from tests.claims.access import answers

KINDS: tuple[Any, ...] = (Network, IPPool, Entry, IPAMClaim, Workload, NAD, Decision)
BY = events.Author(actor="zulu-admin", source="command", request_id="r-zulu")
OURS = events.Author(actor="tester", source="command")
_OWN_IDS, _FOREIGN_IDS = 3_000_000, 7_000_000
_ABSENT = 8_000_001
_ABSENT_ID = re.compile(r"(?<![\da-f])8\d{6}(?![\da-f])")
_TWINS = (
    (re.compile("zulu", re.IGNORECASE), "yank"),
    (re.compile("5a([:.-]?)5a([:.-]?)5a", re.IGNORECASE), r"4e\g<1>4e\g<2>4e"),
    (re.compile(r"10\.90\."), "10.91."),
    (re.compile(r"10\.50\.0\.17"), "10.50.0.18"),
    (re.compile("fd90:"), "fd91:"),
    (re.compile(r"(?<![\da-f])7(\d{6})(?![\da-f])"), r"8\1"),  # an id, not part of a digest
)


def foreign_in(text: str) -> list[str]:
    """What of the foreign world a text tells, with a little of what stands around it.

    Not what is another with every answer: a random token contains any seven digits now and then.
    """
    text = answers.lasting(text)
    result = (match for pattern, _ in _TWINS for match in pattern.finditer(text))
    return [text[max(0, match.start() - 80) : match.end() + 40] for match in result]


def twin(text: str) -> str:
    """The same, of something that is nowhere."""
    for pattern, other in _TWINS:
        text = pattern.sub(other, text)
    return text


def nowhere(text: str) -> str:
    """The twin, with all its ids the same."""
    return _ABSENT_ID.sub(str(_ABSENT), twin(text))


def _tables() -> list[Any]:
    result = [
        *apps.get_app_config("claims").get_models(),
        *apps.get_app_config("pools").get_models(),
    ]
    return [model for model in [*result, User] if model._meta.managed]


def _number_from(start: int) -> None:
    """Ids of each table begin at a number of their own: one tells whose row it is."""
    tables = [model._meta.db_table for model in _tables() if model._meta.pk.column == "id"]
    with connection.cursor() as cursor:
        for place, table in enumerate(tables):
            name = f"pg_get_serial_sequence('{table}', 'id')"
            cursor.execute(f"SELECT setval({name}, {start + 1000 * place})")
        cursor.execute(f"SELECT setval('{SEQUENCE}', {start + 1000 * len(tables)})")


class Owner:
    """Vera, who owns the VMs of the namespace alpha in the cluster prod; `by` says who says so."""

    def __init__(self, author: str = "local") -> None:
        self.author = author
        _number_from(_OWN_IDS)
        self.cluster = worlds.cluster("prod")
        self.user = User.objects.create(username="vera")
        if author == "local":
            memberships.create(self.cluster, ["alpha"], author=OURS, user=self.user)
        else:
            worlds.bound(self.cluster, "alpha", "vera")
        self.user = User.objects.get(pk=self.user.pk)
        self.network = worlds.network("alpha-net", subnets=("10.60.0.0/24",), of=self.cluster)
        self.shared = worlds.network("shared-net", subnets=("10.50.0.0/24",), of=self.cluster)
        self.ippools = []
        for number, network in enumerate((self.network, self.shared)):
            NAD.objects.create(network=network, namespace="alpha", name="attach")
            ippool = worlds.ippool(network, f"ippool-{network.name}")
            self.ippools.append(ippool)
            address = network.subnets[0].replace(".0/24", f".{20 + number}/24")
            mac = f"02:aa:aa:aa:aa:0{number}"
            vm = f"web-{number}"
            worlds.entry(ippool, mac, address, vm=vm, namespace="alpha")
            worlds.claim(network, vm, address, namespace="alpha", mac=mac)
            worlds.workload(network, vm, mac, address, namespace="alpha")
        _decision(self.cluster, "alpha", "web-0")

    def api(self) -> Client:
        token = AuthToken.objects.create(self.user)[1]
        return Client(headers={"Authorization": f"Token {token}"}, raise_request_exception=False)

    def browser(self) -> Client:
        return people.signed_in(self.user, raise_request_exception=False)

    def ids(self, kinds: Sequence[Any] = KINDS) -> list[int]:
        """An id of each kind of thing that is their own."""
        return [kind.objects.order_by("pk")[0].pk for kind in kinds]


def add_foreign(owner: Owner) -> None:
    """Another namespace of the cluster, with a share in a network of Vera's, and another cluster."""
    _number_from(_FOREIGN_IDS)
    user = User.objects.create(username="zulu-user")
    with events.recorded_by(BY):
        other = clusters.create("zulu-cluster", author=BY, description="zulu words")
        for cluster in (owner.cluster, other):
            network = worlds.network(
                f"zulu-net-{cluster.pk}", subnets=("10.90.0.0/24", "fd90::/64"), of=cluster,
                object_name="zulu", namespace="zulu-ns",
            )  # fmt: skip
            memberships.create(cluster, ["zulu-ns"], author=BY, user=user)
            worlds.bound(cluster, "zulu-ns", "zulu-user")
            worlds.bound(cluster, "zulu-ns", "zulu-team", kind="Group")
            _fill(network, "10.90.0.{}/24", "5")
            journal.add(network, "zulu words", "info", user=user, author=BY)
            pool = Pool.objects.get(pk=network.pool_id)
            demand = allocation.BlockDemand(holders=(allocation.Holder("vm", "zulu-held"),))
            requests.allocate(pool.pk, demand, author=BY)
        _fill(owner.shared, "10.50.0.{}/24", "6")
    _number_from(_OWN_IDS + 500)  # what the owner makes from now on


def _fill(network: Network, address: str, mac: str) -> None:
    NAD.objects.create(network=network, namespace="zulu-ns", name="zulu-nad")
    ippool = IPPool.objects.filter(network=network).first() or worlds.ippool(
        network, f"zulu-pool-{network.pk}"
    )
    for number in (171, 172):
        vm, ip = f"zulu-vm-{number}", address.format(number)
        text = f"02:5a:5a:5a:{mac}{mac}:{number % 100}"
        worlds.entry(ippool, text, ip, vm=vm, namespace="zulu-ns", note="zulu note")
        worlds.claim(network, vm, ip, namespace="zulu-ns", mac=text, owner_pod=f"zulu-{number}")
        worlds.workload(network, vm, text, ip, namespace="zulu-ns", node="zulu-node")
    # Their own conflict is no business of Vera's.
    double = [
        Entry.objects.create(ippool=ippool, mac=f"02:5a:5a:5a:dd:0{n}", ips=[address.format(175)], namespace="zulu-ns")
        for n in (1, 2)
    ]  # fmt: skip
    index.write(entries=double)
    # Entries without a namespace are for those who see everything.
    worlds.entry(ippool, f"02:5a:5a:5a:{mac}{mac}:99", address.format(178))
    _decision(network.cluster, "zulu-ns", "zulu-vm-171")


def _decision(cluster: Cluster, namespace: str, vm: str) -> None:
    Decision.objects.create(
        cluster=cluster, at=Now(), path="mutate-pods", operation="CREATE", namespace=namespace,
        name=f"virt-launcher-{vm}", vm=vm, network=f"{namespace}-net", code="patched",
        message=f"{namespace}/{vm} was told its addresses.",
    )  # fmt: skip


def foreign_values() -> tuple[list[int], list[str]]:
    """(an id of each table, texts) by which something foreign could be asked for.

    First the ids of what a VM owner could have too.
    """
    ids = []
    for model in sorted(_tables(), key=lambda model: model not in KINDS):
        if model._meta.pk.column == "id" or model is EntryEvent:
            rows = model._default_manager.filter(pk__gte=_FOREIGN_IDS).order_by("pk")
            ids += list(rows.values_list("pk", flat=True)[:1])
    texts = [
        "zulu-cluster", "zulu-ns", "zulu-vm-171", "zulu-ns/zulu-vm-171", "zulu-user", "zulu-nad",
        *Network.objects.filter(pk__gte=_FOREIGN_IDS).values_list("name", flat=True)[:1],
        *IPPool.objects.filter(pk__gte=_FOREIGN_IDS).values_list("name", flat=True)[:1],
        *IPAMClaim.objects.filter(pk__gte=_FOREIGN_IDS).values_list("name", flat=True)[:1],
        "02:5a:5a:5a:55:71", "02-5a-5a-5a-66-71", "025a5a5a6671",
        "10.90.0.171", "10.50.0.171", "10.90.0.0/24", "fd90::1",
    ]  # fmt: skip
    assert all(foreign_in(str(value)) for value in [*ids, *texts])
    return ids, texts
