"""IPAMClaims as REST shows and reads them, and the request for the manifest of a VM."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rest_framework.fields import empty

from claims.api import scoped
from claims.api.entries_serializers import ConditionSerializer, DuplicateSerializer
from claims.core import macs
from claims.ipamclaims import ipamclaims, states
from claims.models import IPAMClaim, Network
from pools.core import errors, holders, object_reader
from pools.models import Cluster
from pools.platform.rest import fields
from pools.platform.rest.serializers import Representation, Serializer

_MAC_SCHEMA = {"type": "string", "example": "02:03:04:05:06:07"}
_IPS_SCHEMA: dict[str, Any] = {
    "type": "array",
    "maxItems": 2,
    "items": {"type": "string", "example": "10.0.0.5/24"},
}


def _parse_name(value: object, path: str) -> str:
    try:
        return holders.parse_name(value, path)
    except errors.InvalidInput as error:
        if error.code != "k8s_name":
            raise
        # The name of the enhancement proposal, <vm>.<logical network name>, is often no valid object name.
        message = f"{error.message}; leave the name out to get the name that ipam-extensions uses, with dots"
        raise errors.InvalidInput.for_field(path, error.code, message, value) from error


class ClaimStatusSerializer(Representation):
    """The status of the object in the cluster."""

    ips = fields.ListField(child=fields.TextField())
    owner_pod = fields.TextField()
    conditions = fields.ListField(child=ConditionSerializer())


class IPAMClaimSerializer(Serializer):
    """The addresses of an interface of a VM on a network, requested and allocated."""

    id = fields.IntegerField(read_only=True)
    cluster = scoped.ClusterField()
    namespace = fields.NamespaceField()
    name = fields.TextField(_parse_name, required=False)
    network = fields.TextField(
        lambda value, _path: value, source="network.name",
        help_text="The logical name of the network.",
    )  # fmt: skip
    interface = fields.TextField(partial(holders.parse_description, max_length=253), required=False)
    mac = fields.TextField(macs.parse_mac, schema=_MAC_SCHEMA, required=False, allow_null=True)
    ips_requested = fields.ParsedField(schema=_IPS_SCHEMA, required=False)
    vm = fields.NameField(required=False)
    vm_uid = fields.TextField(read_only=True)
    status = ClaimStatusSerializer(source="*", read_only=True)
    pods = fields.ListField(
        child=fields.TextField(),
        read_only=True,
        help_text="The pods that run the VM now; status.owner_pod may be older.",
    )
    state = fields.ChoiceField(states.STATES, read_only=True)
    next_step = fields.TextField(read_only=True)
    finalizers = fields.ListField(child=fields.TextField(), read_only=True)
    deleted_at = fields.TimeField(read_only=True, allow_null=True)
    follows_cluster = fields.FlagField(read_only=True)
    in_cluster = fields.FlagField(read_only=True)
    given_back_at = fields.TimeField(source="gone_at", read_only=True, allow_null=True)
    note = fields.DescriptionField(required=False)
    duplicates = fields.ListField(child=DuplicateSerializer(), read_only=True)
    created_at = fields.TimeField(read_only=True)

    # Read in the order of the fields: the cluster of the network, then the network of the addresses.
    _cluster: Cluster | None = None
    _network: Network | None = None

    def validate_cluster(self, cluster: Cluster) -> Cluster:
        self._cluster = cluster
        return cluster

    def validate_network(self, name: object) -> Network:
        if not isinstance(name, str):
            raise errors.InvalidInput.for_field("", "wrong_type", "must be a text", name)
        rows = scoped.rows(self.context["request"], Network).select_related("cluster")
        if self._cluster is not None and "\0" not in name:
            self._network = rows.filter(cluster=self._cluster, name=name).first()
        if self._network is None:
            message = "the cluster has no such network"
            raise errors.InvalidInput.for_field("", "unknown_network", message, name)
        return self._network

    def validate_ips_requested(self, ips: object) -> tuple[str, ...]:
        if ips is None or self._network is None:
            return ()
        return ipamclaims.parse_ips(ips, self._network, field="")

    def _report_names(self, data: Mapping[str, Any], report: object_reader.ProblemReport) -> None:
        super()._report_names(data, report)
        if not self.partial and data.get("vm") is None and data.get("name") is None:
            report.add("vm", "required", "name the VM")


class IPAMClaimChangeSerializer(IPAMClaimSerializer):
    """A change of a claim; null clears a request, and the fields that never change may be repeated."""

    example = {"note": "For the migration"}

    ips_requested = fields.ParsedField(schema=_IPS_SCHEMA, required=False, allow_null=True)

    def run_validation(self, data: Any = empty) -> Any:
        if not isinstance(data, dict) or not data:
            return super().run_validation(data)
        claim: IPAMClaim = self.context["row"]
        fixed = {
            "cluster": claim.cluster.name,
            "namespace": claim.namespace,
            "name": claim.name,
            "network": claim.network.name,
            "vm": claim.vm,
            "interface": claim.interface,
        }
        for name, current in fixed.items():
            if name in data and data[name] != current:
                raise errors.ImmutableInUse(f"The {name} of a claim cannot be changed.")
        self._network = claim.network
        changes = {name: value for name, value in data.items() if name not in fixed}
        return self.validate(self.to_internal_value(changes))

    def validate_mac(self, mac: str | None) -> str:
        return mac or ""


class ClaimReleaseSerializer(Serializer):
    """Why the addresses of a claim are released."""

    reason = fields.ReasonField()


class VMManifestSerializer(Serializer):
    """The VM of a manifest."""

    vm = fields.NameField()
    namespace = fields.NamespaceField()
    mac = fields.TextField(macs.parse_mac, schema=_MAC_SCHEMA, required=False)
