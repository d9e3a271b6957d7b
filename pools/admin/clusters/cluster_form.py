"""The form that changes a cluster."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.admin.clusters import field
from pools.core import blocks, errors
from pools.models import Category, Cluster, Pool
from pools.platform.admin import attributes, pages, row_forms
from pools.platform.admin import forms as fields
from pools.register import clusters, overlaps


class ClusterChangeForm(attributes.AttributeFields, row_forms.RowForm):
    """The fields that `PATCH clusters/{name}/` changes."""

    attributed = Cluster
    takes_cidrs = True

    description = fields.description_field()
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
    cluster_prefix = fields.cidr_field(
        label=_("Cluster prefix"),
        required=False,
        widget=fields.with_free_cidrs(fields.addresses_text(placeholder="2001:db8:10::/48"), 56),
        help_text=_(
            "IPv6, /64 or larger. The node pool and the instance pool that the cluster lacks are"
            " created in it."
        ),
    )

    def __init__(self, cluster: Cluster, data: Any, *, may_add_pools: bool) -> None:
        super().__init__(data)
        self.show_row(cluster, _values)
        prefix = self.fields["cluster_prefix"]
        prefix.required = cluster.cluster_prefix is not None
        if not may_add_pools or _is_divided(cluster):
            prefix.disabled, prefix.required = True, False
            prefix.help_text = gettext("A prefix that is divided into pools cannot be changed.")
            if not may_add_pools:
                prefix.help_text = gettext("To set a prefix you need the permission to add pools.")

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


def _values(cluster: Cluster) -> dict[str, Any]:
    return {
        "description": cluster.description,
        "instance_gateway": str(cluster.instance_gateway),
        "instance_mtu": cluster.instance_mtu,
        "instance_dns": "\n".join(map(str, cluster.instance_dns)),
        "cluster_prefix": str(cluster.cluster_prefix or ""),
        **attributes.initial(cluster),
    }


def _is_divided(cluster: Cluster) -> bool:
    pools = Pool.objects.filter(
        cluster=cluster, category__in=[Category.NODE, Category.INSTANCE], cidrs__isnull=False
    )
    return cluster.cluster_prefix is not None and pools.exists()


def _field_of_problem(problem: errors.FieldProblem) -> str:
    about_prefix = {errors.ImmutableInUse.code, errors.CIDROverlap.code}
    return "cluster_prefix" if problem.code in about_prefix else problem.field


def _overlaps_accepted(form: ClusterChangeForm, cluster: Cluster) -> bool:
    prefix = form.cleaned_data["cluster_prefix"]
    new = [prefix] if prefix not in {None, "", cluster.cluster_prefix} else []
    return field.overlaps_accepted(form, new, overlaps.owner_of_prefix(cluster))


def edit(request: HttpRequest, cluster: Cluster) -> HttpResponse:
    """Show and save the form."""
    form = ClusterChangeForm(
        cluster, request.POST or None, may_add_pools=request.user.has_perm("pools.add_pool")
    )
    if request.method == "POST" and form.is_valid() and _overlaps_accepted(form, cluster):
        with pages.errors_at_field(form, _field_of_problem):
            clusters.change(
                cluster,
                form.changes(),
                author=pages.author(request),
                version=form.check_version,
            )
            return pages.done(
                request,
                gettext("Cluster %(cluster)s was changed.") % {"cluster": cluster.name},
                cluster,
            )
    return pages.form_page(
        request, cluster, form, title=gettext("Edit %(cluster)s") % {"cluster": cluster.name}
    )
