"""The forms that add a cluster, change it, and split its prefix into pools."""

from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy as _

from pools.admin.clusters import field
from pools.core import addresses, blocks, errors
from pools.models import Cluster, Pool
from pools.models.pools import Category
from pools.platform.admin import attributes, forms as fields, pages, row_forms
from pools.register import clusters, overlaps


class _PrefixForm(attributes.AttributeFields, field.NewCidrsForm, row_forms.ObjectForm):
    """What the forms of a cluster have in common: its prefix, which is split into pools."""

    attributed = Cluster
    description = fields.description_field()
    cluster_prefix = fields.cidr_field(
        label=_("Cluster prefix"),
        required=False,
        widget=fields.with_free_cidrs(fields.addresses_text(placeholder="2001:db8:10::/48"), 56),
        help_text=_(
            "IPv6, /64 or larger. It is split into one pool for nodes and one for "
            "instances. Leave it empty for a cluster without these pools."
        ),
    )

    def owner(self) -> overlaps.NetworkOwner:
        return overlaps.owner_of_prefix(self.row)

    def new_cidrs(self) -> list[addresses.Network]:
        prefix = self.cleaned_data["cluster_prefix"]
        present = self.row.cluster_prefix if self.row else None
        return [prefix] if prefix and prefix != present else []


class ClusterForm(_PrefixForm):
    """A new cluster; its page may be asked for a preview of the pools first."""

    name = fields.name_field(label=_("Name"))
    node_prefix = fields.cidr_field(
        label=_("Node prefix"),
        required=False,
        help_text=_("Empty: the first /64 of the cluster prefix."),
    )
    instance_prefix = fields.cidr_field(
        label=_("Instance prefix"),
        required=False,
        help_text=_("Empty: the second /64 of the cluster prefix."),
    )

    class Meta:
        model = Cluster
        fields = ("name", "description", "cluster_prefix")

    field_order = ("name",)

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        node, instance = values.get("node_prefix"), values.get("instance_prefix")
        prefix = values.get("cluster_prefix")
        if prefix is not None:
            try:
                self.parts = blocks.divide_cluster_prefix(prefix, node=node, instance=instance)
            except errors.InvalidInput as error:
                pages.add_errors(self, error)
        elif (node or instance) and "cluster_prefix" not in self.errors:
            self.add_error("cluster_prefix", gettext("Enter the prefix to split."))
        return values

    def is_valid(self) -> bool:
        """Return False, without an error, for a preview, too."""
        return super().is_valid() and "_preview" not in self.data

    def new_cidrs(self) -> list[addresses.Network]:
        if Cluster.objects.filter(name=self.cleaned_data.get("name")).exists():
            return []  # the service refuses the name
        return super().new_cidrs()


class DivideForm(ClusterForm):
    """The prefix of a cluster that has no pools for nodes and instances yet."""

    def __init__(self, cluster: Cluster, *args: Any) -> None:
        super().__init__(*args, initial={"cluster_prefix": cluster.cluster_prefix})
        self.cluster = cluster
        del self.fields["name"], self.fields["description"]
        self.remove_attributes()
        self.fields["cluster_prefix"].required = True

    def owner(self) -> overlaps.NetworkOwner:
        return overlaps.owner_of_prefix(self.cluster)


class ClusterChangeForm(_PrefixForm):
    """The fields that `PATCH clusters/{name}/` changes."""

    instance_gateway = fields.address_field(
        label=_("Instance gateway"),
        help_text=_("The address of the host on the link of each instance."),
    )
    instance_mtu = forms.IntegerField(
        label=_("Instance MTU"),
        min_value=clusters.LEAST_MTU,
        max_value=clusters.MOST_MTU,
        widget=fields.text(inputmode="numeric"),
    )
    instance_dns = fields.addresses_field(
        label=_("Instance DNS servers"),
        help_text=format_lazy(
            _("At most {number} addresses, one per line."), number=clusters.MOST_DNS_SERVERS
        ),
    )
    field_order = (
        "description", "instance_gateway", "instance_mtu", "instance_dns", "cluster_prefix",
    )  # fmt: skip

    class Meta:
        model = Cluster
        fields = (
            "description", "instance_gateway", "instance_mtu", "instance_dns", "cluster_prefix",
        )  # fmt: skip

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        prefix = self.fields["cluster_prefix"]
        prefix.required = self.row.cluster_prefix is not None
        prefix.help_text = gettext(
            "IPv6, /64 or larger. The node pool and the instance pool that the cluster lacks are"
            " created in it."
        )
        may_add_pools = self.request.user.has_perm("pools.add_pool")
        if not may_add_pools or _is_divided(self.row):
            prefix.disabled, prefix.required = True, False
            prefix.help_text = gettext("A prefix that is divided into pools cannot be changed.")
            if not may_add_pools:
                prefix.help_text = gettext("To set a prefix you need the permission to add pools.")

    def shown_values(self, row: Cluster) -> dict[str, Any]:
        return {
            **super().shown_values(row),
            "instance_gateway": str(row.instance_gateway),
            "instance_dns": "\n".join(map(str, row.instance_dns)),
            "cluster_prefix": str(row.cluster_prefix or ""),
        }

    def clean_instance_dns(self) -> list[str]:
        servers = list(self.cleaned_data["instance_dns"])
        if len(servers) > clusters.MOST_DNS_SERVERS:
            message = gettext("Enter at most %(number)s addresses.")
            raise forms.ValidationError(message % {"number": clusters.MOST_DNS_SERVERS})
        return servers

    def clean_cluster_prefix(self) -> Any:
        prefix = self.cleaned_data["cluster_prefix"]
        if prefix is not None:
            with pages.errors_at_field(self, "cluster_prefix"):
                blocks.divide_cluster_prefix(prefix)
        return prefix

    def changes(self) -> dict[str, Any]:
        """Return the values as `clusters.change` takes them."""
        description = self.cleaned_data["description"] or ""
        values = {**self.cleaned_data, "description": description}
        if self.fields["cluster_prefix"].disabled:
            del values["cluster_prefix"]
        return values


def _is_divided(cluster: Cluster) -> bool:
    pools = Pool.objects.filter(
        cluster=cluster, category__in=[Category.NODE, Category.INSTANCE], cidrs__isnull=False
    )
    return cluster.cluster_prefix is not None and pools.exists()


def field_of_problem(problem: errors.FieldProblem) -> str | None:
    if problem.code == errors.AlreadyExists.code:
        return "name"
    about_prefix = {errors.ImmutableInUse.code, errors.CIDROverlap.code}
    return "cluster_prefix" if problem.code in about_prefix else problem.field
