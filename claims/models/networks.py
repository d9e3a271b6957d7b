"""Logical networks, their NADs and IPPools with entries, settings and decisions of webhooks, and field types."""

from typing import Any

from django.contrib.contenttypes.fields import GenericRelation
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Func
from django.utils.translation import gettext_lazy as _
from netfields import CidrAddressField, MACAddressField

from claims.core import macs
from pools.core import errors
from pools.models import Cluster, Pool
from pools.models.attributes import Attributed, attribute_indexes


class _ComputedAddress(CidrAddressField):
    """A CIDR that belongs to no model, which netfields asks for the type of the column."""

    def get_db_prep_value(self, value: Any, *_args: Any, **_more: Any) -> str:
        return str(value)


class FirstAddress(Func):
    """The lowest address of a column with a list of addresses, as a CIDR; without any, the highest of all.

    Lists are ordered by it. IPv4 comes before IPv6. A query for each row would take most of the time, so that only
    lists of several addresses have one.
    """

    template = (
        "COALESCE(CASE WHEN cardinality(%(expressions)s) < 2 THEN split_part((%(expressions)s)[1], '/', 1)::inet"
        " ELSE (SELECT min(split_part(ip, '/', 1)::inet) FROM unnest(%(expressions)s) AS ip) END,"
        " 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'::inet)::cidr"
    )
    output_field = _ComputedAddress()  # type: ignore[no-untyped-call]  # netfields has no types


class MACField(MACAddressField):
    """A `macaddr` column; in Python a string in lower case with colons, as `macs.parse_mac` returns it."""

    def from_db_value(self, value: Any, *_args: Any) -> str | None:
        return None if value is None else str(value)

    def to_python(self, value: Any) -> str | None:
        if value in (None, ""):
            return None
        try:
            return macs.parse_mac(str(value), lenient=True)
        except errors.InvalidInput as error:
            raise ValidationError(error.message, code=error.code) from error

    def get_prep_value(self, value: Any) -> str | None:
        return self.to_python(value)

    def get_db_prep_value(self, value: Any, *_args: Any, **_more: Any) -> str | None:
        return self.get_prep_value(value)


class NetworkKind(models.TextChoices):
    """Kind of the object that defines a network; empty if only an IPPool or a claim names the network."""

    CUDN = "cudn", "ClusterUserDefinedNetwork"
    UDN = "udn", "UserDefinedNetwork"
    NAD = "nad", "NetworkAttachmentDefinition"  # without a UDN
    UNKNOWN = "", _("not seen in the cluster")


def _strings() -> Any:
    return ArrayField(models.CharField(max_length=64), default=list, blank=True)


class Network(Attributed):
    """A logical network of OVN-Kubernetes in one cluster: the `name` in a NAD's `spec.config`.

    Addresses are strings in canonical form. `default_gateways` are the configured gateways; without
    them OVN-Kubernetes takes some (`udn.gateways` in claims/core/networks). `pool` has the
    subnets, in an address space of the network alone; a network without subnets has no pool. A
    network that an IPPool or a claim names before its object is observed has a row of kind UNKNOWN,
    so that the IPPool or claim can be stored.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="networks")
    name = models.CharField("logical network name", max_length=253)
    kind = models.CharField(
        max_length=4, choices=NetworkKind, blank=True, default=NetworkKind.UNKNOWN
    )
    object_name = models.CharField(max_length=253, blank=True, default="")  # of the (C)UDN or NAD
    namespace = models.CharField(max_length=253, blank=True, default="")  # of a UDN or NAD
    topology = models.CharField(max_length=16, blank=True, default="")  # layer2, layer3, localnet
    role = models.CharField(max_length=16, blank=True, default="")  # primary, secondary
    ipam_mode = models.CharField(max_length=16, blank=True, default="")  # Enabled, Disabled
    lifecycle = models.CharField(max_length=16, blank=True, default="")  # Persistent or ""
    mtu = models.PositiveIntegerField(null=True, blank=True)
    subnets = _strings()
    default_gateways = _strings()
    reserved_subnets = _strings()
    infrastructure_subnets = _strings()
    exclude_subnets = _strings()
    join_subnets = _strings()
    namespace_selector = models.JSONField(null=True, blank=True)  # of a ClusterUserDefinedNetwork
    conditions = models.JSONField(default=list, blank=True)  # of the (C)UDN's status
    uid = models.CharField(max_length=64, blank=True, default="", editable=False)
    pool = models.OneToOneField(
        Pool, on_delete=models.SET_NULL, null=True, blank=True, related_name="network"
    )
    # True if the row mirrors the cluster's object; False if the network was created here.
    follows_cluster = models.BooleanField(default=False, editable=False)
    # True if the network was created here and reconcile writes it to the (managed) cluster.
    applied = models.BooleanField(default=False)
    gone_at = models.DateTimeField(
        null=True, blank=True, editable=False
    )  # when the object was deleted
    description = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    journal = GenericRelation("pools.JournalEntry")

    class Meta:
        verbose_name = _("network")
        ordering = ["cluster__name", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "name"],
                name="network_name_unique",
                violation_error_code="already_exists",
                violation_error_message=_("The cluster already has a network with this name."),
            ),
        ]
        indexes = attribute_indexes("network")
        permissions = [
            ("view_every_namespace", "Can see the VM networks of all namespaces"),
            ("request_address", "Can request addresses for VMs of their namespaces"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster}/{self.name}"


class NAD(models.Model):
    """A NetworkAttachmentDefinition through which a namespace uses a network."""

    network = models.ForeignKey(Network, on_delete=models.CASCADE, related_name="nads")
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64, blank=True, default="", editable=False)
    role = models.CharField(max_length=16, blank=True, default="")
    allow_persistent_ips = models.BooleanField(default=False)
    subnets = (
        _strings()
    )  # of the NAD's config; they differ from the network's only if the NAD was edited
    config = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name = _("network attachment definition")
        ordering = ["namespace", "name"]
        constraints = [
            models.UniqueConstraint(fields=["network", "namespace", "name"], name="nad_unique"),
        ]
        indexes = [models.Index(fields=["namespace", "name"], name="nad_namespace")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Annotation(models.TextChoices):
    """The annotation that the mutating webhook writes."""

    DEFAULT_NETWORK = (
        "default-network",
        _("v1.multus-cni.io/default-network on pods (enhancement proposal)"),
    )
    ADDRESSES = "addresses", _("network.kubevirt.io/addresses on VMs (ipam-extensions)")


class NetworkSettings(models.Model):
    """How the VMs of a cluster receive their addresses."""

    cluster = models.OneToOneField(
        Cluster, on_delete=models.CASCADE, related_name="network_settings"
    )
    annotation = models.CharField(
        max_length=16, choices=Annotation, default=Annotation.DEFAULT_NETWORK
    )
    # Namespace and name in the annotation's element for the default network; OVN-Kubernetes checks both.
    default_nad_namespace = models.CharField(max_length=63, default="ovn-kubernetes")
    default_nad_name = models.CharField(max_length=253, default="default")

    class Meta:
        verbose_name = _("settings of VM networks")
        verbose_name_plural = _("settings of VM networks")

    def __str__(self) -> str:
        return str(self.cluster)


class Decision(models.Model):
    """A decision of the admission webhook about one object, with its reason.

    Dry runs are not recorded. Old decisions are deleted.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="decisions")
    at = models.DateTimeField()
    path = models.CharField(max_length=32)  # mutate-pods, mutate-vms, validate-ippools
    operation = models.CharField(max_length=8)
    namespace = models.CharField(max_length=253, blank=True, default="")
    name = models.CharField(max_length=253, blank=True, default="")
    vm = models.CharField(max_length=253, blank=True, default="")
    network = models.CharField(max_length=253, blank=True, default="")
    code = models.CharField(max_length=63)  # patched, no_entry, not_a_vm, …
    message = models.CharField(_("message"), max_length=1000, blank=True, default="")
    allowed = models.BooleanField(default=True)
    patch = models.JSONField(null=True, blank=True)
    milliseconds = models.FloatField(default=0)

    class Meta:
        verbose_name = _("decision")
        verbose_name_plural = _("decisions")
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["cluster", "-id"], name="decision_cluster"),
            models.Index(fields=["cluster", "namespace", "vm"], name="decision_vm"),
            models.Index(fields=["at"], name="decision_at"),
        ]

    def __str__(self) -> str:
        return f"{self.path} {self.namespace}/{self.name}: {self.code}"


class EntrySource(models.TextChoices):
    """Where an entry came from."""

    HAND = "hand", _("manual")
    API = "api", "REST"
    CLUSTER = "cluster", _("IPPool of the cluster")
    IMPORT = "import", _("import")
    ADOPTED = "adopted", _("adopted from a running workload")
    REQUEST = "request", _("requested by a VM owner")


class IPPool(models.Model):
    """An IPPool: the addresses of each MAC address on one logical network.

    This is the centralized form of the enhancement proposal. Each network of a cluster has at most
    one. `conditions` are those of the object's status (claims/core/ippool.py), with their transition
    times. `problems` are the parts of the cluster's object that are not valid:
    `[{"mac", "code", "message"}]`.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="ippools")
    network = models.OneToOneField(
        Network,
        on_delete=models.RESTRICT,
        related_name="ippool",
        error_messages={"unique": _("The network already has an IPPool.")},
    )
    name = models.CharField(max_length=253)
    conditions = models.JSONField(default=list, blank=True, editable=False)
    problems = models.JSONField(default=list, blank=True, editable=False)
    duplicate_macs = models.PositiveIntegerField(
        default=0, editable=False
    )  # number of values, not of entries
    duplicate_ips = models.PositiveIntegerField(default=0, editable=False)
    uid = models.CharField(max_length=64, blank=True, default="", editable=False)
    # True if the row mirrors the cluster's object: observed there, and not edited here since.
    follows_cluster = models.BooleanField(default=False, editable=False)
    # Incremented by every change of entries. `agreed` holds the object's uid, its resourceVersion and
    # the version here when the object and the row were last equal.
    version = models.PositiveBigIntegerField(default=1, editable=False)
    agreed = models.CharField(max_length=160, blank=True, default="", editable=False)
    gone_at = models.DateTimeField(
        null=True, blank=True, editable=False
    )  # when the object was deleted
    note = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("IPPool")
        verbose_name_plural = _("IPPools")
        ordering = ["cluster__name", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "name"],
                name="ippool_name_unique",
                violation_error_code="already_exists",
                violation_error_message=_("The cluster already has an IPPool with this name."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster}/{self.name}"


class Entry(models.Model):
    """A MAC entry: a MAC address of an IPPool and its addresses.

    An address is a host address with a prefix length, `10.0.0.5/24`. Duplicates can be stored, because
    people must see them; `claims.models.IndexEntry` marks them.
    """

    ippool = models.ForeignKey(IPPool, on_delete=models.CASCADE, related_name="entries")
    mac = MACField()
    ips = ArrayField(models.CharField(max_length=64))
    vm = models.CharField("VM", max_length=253, blank=True, default="")
    namespace = models.CharField(_("namespace"), max_length=253, blank=True, default="")
    source = models.CharField(max_length=8, choices=EntrySource, default=EntrySource.HAND)
    note = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("MAC entry")
        verbose_name_plural = _("MAC entries")
        ordering = ["ippool_id", "mac", "id"]
        indexes = [
            models.Index(fields=["ippool", "mac", "id"], name="entry_mac"),
            models.Index(fields=["namespace", "vm"], name="entry_vm"),
            models.Index(fields=["vm", "-id"], name="entry_vm_alone"),
        ]

    def __str__(self) -> str:
        return f"{self.mac} {', '.join(self.ips)}"
