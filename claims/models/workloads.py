from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from claims.models.networks import Entry, MACField, Network
from pools.models import Cluster
from pools.models.fields import HostAddressField


class IPAMClaim(models.Model):
    """An IPAMClaim (k8s.cni.cncf.io/v1alpha1): addresses of a VM's interface that outlive its pods.

    `mac` and `ips_requested` are the requests of the enhancement proposal's decentralized form. `ips`,
    `owner_pod` and `conditions` are the status: as last observed in the cluster, or as allocated here if
    Cadastre writes the status (managed resource `claims`). Addresses are strings with a prefix length.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="ipamclaims")
    network = models.ForeignKey(Network, on_delete=models.RESTRICT, related_name="claims")
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    interface = models.CharField(max_length=253, blank=True, default="")
    mac = MACField(null=True, blank=True)
    ips_requested = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    vm = models.CharField("VM", max_length=253, blank=True, default="")
    vm_uid = models.CharField(max_length=64, blank=True, default="")
    ips = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    owner_pod = models.CharField(max_length=253, blank=True, default="")
    conditions = models.JSONField(default=list, blank=True)
    finalizers = ArrayField(models.CharField(max_length=317), default=list, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)  # metadata.deletionTimestamp
    uid = models.CharField(max_length=64, blank=True, default="", editable=False)
    follows_cluster = models.BooleanField(default=False, editable=False)
    # Set when the object is deleted. The row is kept until its blocks are released.
    gone_at = models.DateTimeField(null=True, blank=True, editable=False)
    note = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("IPAMClaim")
        ordering = ["cluster__name", "namespace", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "namespace", "name"],
                name="ipamclaim_name_unique",
                violation_error_code="already_exists",
                violation_error_message=_("The namespace already has an IPAMClaim with this name."),
            ),
        ]
        # Not beginning with the cluster, because pages search in all clusters.
        indexes = [
            models.Index(fields=["vm", "namespace", "cluster"], name="ipamclaim_vm"),
            models.Index(fields=["namespace", "name"], name="ipamclaim_namespace"),
            models.Index(fields=["name"], name="ipamclaim_name"),
            # The few without an address: pending, refused.
            models.Index(fields=["id"], condition=Q(ips=[]), name="ipamclaim_without_ips"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class WorkloadKind(models.TextChoices):
    """Kind of a workload; launcher pods belong to the workload of their VM.

    A TEMPLATE does not run: it is an interface of a VirtualMachine's template that names a MAC address, which
    the VM has from its next start on.
    """

    VMI = "vmi", _("VM")
    POD = "pod", _("pod")
    TEMPLATE = "vm", _("VM template")


class Workload(models.Model):
    """A running VM or pod on a network, with the MAC and the addresses observed in the cluster.

    Each attachment of a VMI, or of a pod that belongs to no VM, has one row, and so has each interface of a
    VM's template with a MAC address, whether the VM runs or not. `pods` lists the launcher
    pods of a VMI (two during a live migration). `vm_uid` is that of the VirtualMachine, which outlives
    its VMIs.
    """

    network = models.ForeignKey(Network, on_delete=models.CASCADE, related_name="workloads")
    kind = models.CharField(max_length=4, choices=WorkloadKind)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)  # of the VM, or of the pod
    uid = models.CharField(max_length=64)  # of the VMI, the pod or the VirtualMachine
    vm_uid = models.CharField(max_length=64, blank=True, default="")
    interface = models.CharField(max_length=253, blank=True, default="")
    mac = MACField(null=True, blank=True)
    ips = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    node = models.CharField(max_length=253, blank=True, default="")
    phase = models.CharField(max_length=32, blank=True, default="")
    pods = ArrayField(models.CharField(max_length=253), default=list, blank=True)
    since = models.DateTimeField()

    class Meta:
        verbose_name = _("workload")
        verbose_name_plural = _("workloads")
        ordering = ["network_id", "namespace", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["network", "kind", "uid", "interface"], name="workload_unique"
            ),
        ]
        indexes = [
            models.Index(fields=["namespace", "name"], name="workload_name"),
            models.Index(fields=["name"], name="workload_name_alone"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ComparisonResult(models.TextChoices):
    """Result of comparing a registered entry or claim with a running workload."""

    MATCHING = "matching", "matching"
    MISSING = "missing", "missing"  # registered, without a running workload
    DIFFERENT = "different", "different"
    UNKNOWN = "unknown", "unknown"  # running, not registered


class _Comparison(models.Model):
    """An entry or claim beside a running workload (a view: claims/sql/workload_comparison.sql).

    A row is a pair of an entry or claim and a workload, an entry or claim without a workload, or a
    workload that is not registered. `by` is what the two have in common: `mac`, `vm` or `address`.
    `same` is True for a pair with equal values, which is different all the same if the workload is a duplicate.
    Rows are ordered by `section`, `item`, `beside`.
    """

    id = models.CharField(max_length=64, primary_key=True)
    network = models.ForeignKey(Network, on_delete=models.DO_NOTHING, related_name="+")
    section = models.IntegerField()  # 1 entries, 2 claims, 3 workloads that are not registered
    item = models.BigIntegerField()  # the id of the entry, the claim or, in section 3, the workload
    beside = models.BigIntegerField()  # the workload's id, or 0
    entry = models.ForeignKey(Entry, on_delete=models.DO_NOTHING, null=True, related_name="+")
    claim = models.ForeignKey(IPAMClaim, on_delete=models.DO_NOTHING, null=True, related_name="+")
    workload = models.ForeignKey(Workload, on_delete=models.DO_NOTHING, null=True, related_name="+")
    by = models.CharField(max_length=7)
    registered_namespace = models.CharField(max_length=253)
    registered_vm = models.CharField(max_length=253)
    running_namespace = models.CharField(max_length=253)
    running_name = models.CharField(max_length=253)
    same = models.BooleanField()
    result = models.CharField(max_length=9, choices=ComparisonResult)

    class Meta:
        abstract = True
        ordering = ["section", "item", "beside"]

    def __str__(self) -> str:
        return f"{self.result} {self.id}"


class WorkloadComparison(_Comparison):
    """The comparison of a network with all its namespaces."""

    class Meta(_Comparison.Meta):
        abstract = False
        managed = False
        db_table = "claims_workload_comparison"


class NamespaceWorkloadComparison(_Comparison):
    """The comparison of each namespace alone, as if no other existed, for users who see only some."""

    id = models.CharField(max_length=512, primary_key=True)
    namespace = models.CharField(max_length=253)

    class Meta(_Comparison.Meta):
        abstract = False
        managed = False
        db_table = "claims_namespace_workload_comparison"


class WorkloadCounts(models.Model):
    """Stored counts of a comparison by result, of a network that is too large to compare for an overview."""

    network = models.OneToOneField(Network, on_delete=models.CASCADE, related_name="+")
    matching = models.PositiveIntegerField()
    missing = models.PositiveIntegerField()
    different = models.PositiveIntegerField()
    unknown = models.PositiveIntegerField()
    counted_at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.network_id}: {self.matching} matching"

    def as_dict(self) -> dict[str, int]:
        """Return the number of rows by result."""
        return {result: getattr(self, result) for result in ComparisonResult.values}


class IndexEntry(models.Model):
    """A MAC address or an IP address of a network that an entry, a claim or a workload names.

    The table is the address index over all three: it finds duplicates, and looks up a MAC or an
    address. An owner has one row for each of its addresses, or one row with a null address.
    Only claims/address_index/index.py writes rows, in the transaction that writes their owner.

    `duplicate_mac` and `duplicate_ip` mark a conflict with another index entry of the network
    (claims/address_index/conflicts.py defines conflicts).
    """

    network = models.ForeignKey(Network, on_delete=models.CASCADE, related_name="index_entries")
    entry = models.ForeignKey(
        Entry, on_delete=models.CASCADE, null=True, related_name="index_entries"
    )
    claim = models.ForeignKey(
        IPAMClaim, on_delete=models.CASCADE, null=True, related_name="index_entries"
    )
    workload = models.ForeignKey(
        Workload, on_delete=models.CASCADE, null=True, related_name="index_entries"
    )
    address = HostAddressField(null=True)
    mac = MACField(null=True)
    namespace = models.CharField(max_length=253, blank=True, default="")
    vm = models.CharField(max_length=253, blank=True, default="")
    # False for a claim that only requests the address and has not been granted it yet.
    holds = models.BooleanField(default=True, db_default=True)
    duplicate_mac = models.BooleanField(default=False, db_default=False)
    duplicate_ip = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="index_entry_has_one_owner",
                condition=Q(entry__isnull=False, claim=None, workload=None)
                | Q(entry=None, claim__isnull=False, workload=None)
                | Q(entry=None, claim=None, workload__isnull=False),
            ),
            models.CheckConstraint(
                name="index_entry_names_something",
                condition=Q(address__isnull=False) | Q(mac__isnull=False) | ~Q(vm=""),
            ),
        ]
        indexes = [
            models.Index(
                fields=["network", "address"],
                condition=Q(address__isnull=False),
                name="index_entry_address",
            ),
            models.Index(
                fields=["network", "mac"], condition=Q(mac__isnull=False), name="index_entry_mac"
            ),
            models.Index(
                fields=["network"],
                condition=Q(duplicate_mac=True) | Q(duplicate_ip=True),
                name="index_entry_duplicate",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.mac or '?'} {self.address or '?'}"
