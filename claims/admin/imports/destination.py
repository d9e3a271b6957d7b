"""Where the addresses of an import go: a network, or a cluster whose networks are mapped by port group."""

from __future__ import annotations

import itertools
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

    Its value is the network, the cluster, or "". `offer` says which ones there are, `look_among` for a name
    alone; links to the form name them as the menu does.
    """

    widget = fields.select()

    def offer(self, request: HttpRequest) -> None:
        """Offer the networks that the user of the request may see, and their clusters."""
        self.look_among(request)
        if self.are_many:
            self.widget = related.name_widget(
                scoped.OFFERED_NETWORKS, placeholder=gettext("Cluster/network, or a cluster")
            )
            return
        choices = list(self._menu())
        self.choices = [("", gettext("Choose a network")), *choices] if choices else []

    def look_among(self, request: HttpRequest) -> None:
        """Let `find` look among these networks, without making their menu."""
        self._rows = scoped.rows(request, Network).filter(gone_at=None).select_related("cluster")
        self.are_many = scoped.NETWORKS.are_many(self._rows)

    @property
    def is_empty(self) -> bool:
        """True if there is no network at all."""
        return not self.are_many and not self.choices

    def _menu(self) -> Any:
        rows = self._rows.order_by("cluster__name", "name")
        for cluster, networks in itertools.groupby(rows, lambda row: row.cluster):
            label = gettext("%(cluster)s: map by port group") % {"cluster": cluster.name}
            choices = [(f"network-{row.pk}", _label(row)) for row in networks]
            yield cluster.name, [*choices, (f"cluster-{cluster.pk}", label)]

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
            rows = self._rows.filter(cluster__name=cluster_name)
            row = (rows.filter(name=name) if name else rows).first()
            if row is not None:
                return row if name else row.cluster
        kind, _dash, number = text.partition("-")
        if kind == "network":
            return self._rows.filter(pk=lists.parse_id(number)).first()
        row = self._rows.filter(cluster=lists.parse_id(number)).first()
        return row.cluster if kind == "cluster" and row is not None else None


def _name(found: Destination) -> str:
    return f"{found.cluster.name}/{found.name}" if isinstance(found, Network) else found.name


def _label(network: Network) -> str:
    subnets = ", ".join(network.subnets)
    return f"{network.name} ({subnets})" if subnets else network.name
