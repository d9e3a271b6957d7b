"""Where an import goes: VMs to a network, or to a cluster whose networks are mapped; a register to a cluster."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext

from claims.admin import scoped
from claims.models import Network
from pools.models import Cluster
from pools.platform.admin import forms as fields
from pools.platform.admin import lists, related

Destination = Network | Cluster


class DestinationField(forms.ChoiceField):
    """A menu of `network-1` and `cluster-1` while the networks are few, else a name: `prod/vlan10`, `prod`.

    Its value is the network, the cluster, or "". `offer` says which ones there are; links to the form name them as
    the menu does.
    """

    widget = fields.select()

    def offer(self, request: HttpRequest, *, has_registers: bool) -> None:
        """Offer the networks that the user of the request may see, and their clusters; for registers all clusters."""
        self._rows = scoped.rows(request, Network).filter(gone_at=None).select_related("cluster")
        self._clusters = Cluster.objects.all()
        if not has_registers:
            self._clusters = self._clusters.filter(pk__in=self._rows.order_by().values("cluster"))
        self.are_many = scoped.NETWORKS.are_many(self._rows)
        if self.are_many:
            self.widget = related.name_widget(
                scoped.OFFERED_NETWORKS, placeholder=gettext("Cluster/network, or a cluster")
            )
            return
        choices = list(self._menu())
        nothing = gettext("By the addresses, if that is unambiguous")
        self.choices = [("", nothing), *choices] if choices else []

    @property
    def is_empty(self) -> bool:
        """True if there is no network at all."""
        return not self.are_many and not self.choices

    def _menu(self) -> Any:
        networks: dict[int, list[tuple[str, str]]] = defaultdict(list)
        for row in self._rows.order_by("name"):
            networks[row.cluster_id].append((f"network-{row.pk}", network_label(row)))
        for cluster in self._clusters.order_by("name"):
            label = gettext("%(cluster)s: the whole cluster") % {"cluster": cluster.name}
            yield cluster.name, [(f"cluster-{cluster.pk}", label), *networks[cluster.pk]]

    def prepare_value(self, value: Any) -> Any:
        """Return what the form shows: in place of a link's `network-1` the name, if names are typed."""
        found = self.find(str(value or "")) if self.are_many else None
        return value if found is None else _name(found)

    def to_python(self, value: Any) -> Destination | str:
        text = str(value or "").strip()
        return self.find(text) or text

    def validate(self, value: Destination | str) -> None:
        if not isinstance(value, str):
            return
        if self.are_many and value:
            raise ValidationError(related.unknown_name(value), code="not_found")
        super().validate(value)  # says that it is no choice

    def find(self, text: str) -> Destination | None:
        """Return what a choice, or where names are typed a name, means; None for anything else."""
        cluster_name, _slash, name = text.partition("/")
        if self.are_many and "\0" not in text:
            if not name and (cluster := self._clusters.filter(name=cluster_name).first()):
                return cluster
            row = self._rows.filter(cluster__name=cluster_name, name=name).first()
            if row is not None:
                return row
        kind, _dash, number = text.partition("-")
        if kind == "network":
            return self._rows.filter(pk=lists.parse_id(number)).first()
        if kind != "cluster":
            return None
        return self._clusters.filter(pk=lists.parse_id(number)).first()


def _name(found: Destination) -> str:
    return f"{found.cluster.name}/{found.name}" if isinstance(found, Network) else found.name


def network_label(network: Network) -> str:
    """Return a network's name with its subnets, for menus."""
    subnets = ", ".join(network.subnets)
    return f"{network.name} ({subnets})" if subnets else network.name
