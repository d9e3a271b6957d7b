"""The options of an import of a register: other clusters for its VRFs and sites, holders and cooldown."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.core import errors
from pools.models import Cluster
from pools.models.pools import DAY
from pools.platform.admin import forms as fields


def parse_mapping(text: str) -> dict[str, dict[str, int]]:
    """Return `{"vrf": {name: cluster id}, "site": {…}}` of lines `vrf NAME = CLUSTER`. Raises InvalidInput."""
    clusters = dict(Cluster.objects.values_list("name", "pk"))
    mapping: dict[str, dict[str, int]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        left, equals, cluster = line.rpartition("=")
        kind, _blank, name = left.strip().partition(" ")
        if not equals or kind.lower() not in {"vrf", "site"} or not name.strip():
            message = gettext(
                "write “vrf NAME = CLUSTER” or “site NAME = CLUSTER”, not “%(line)s”"
            ) % {"line": line}
            raise errors.InvalidInput.for_field("mapping", "mapping_syntax", message, line)
        if cluster.strip() not in clusters:
            message = gettext("there is no cluster “%(cluster)s”") % {"cluster": cluster.strip()}
            raise errors.InvalidInput.for_field("mapping", "unknown_cluster", message, line)
        mapping.setdefault(kind.lower(), {})[name.strip()] = clusters[cluster.strip()]
    return mapping


class RegisterOptions(forms.Form):
    """The options that a file and a NetBox source have."""

    mapping = fields.ParsedField(
        parse_mapping,
        label=_("VRFs and sites of other clusters"),
        required=False,
        widget=fields.lines(3),
        help_text=_(
            "One per line: vrf NAME = CLUSTER, or site NAME = CLUSTER. Without a line, a VRF becomes an "
            "address space of its own in the cluster above."
        ),
    )
    cooldown = fields.DurationField(
        label=_("Cooldown of new pools"),
        initial="1d",
        help_text=_("A released address is not given to another holder for this time."),
    )

    def register_options(self) -> dict[str, Any]:
        """Return the mapping and the cooldown; one that is empty is a day."""
        cooldown = self.cleaned_data["cooldown"]
        return {
            "mapping": self.cleaned_data["mapping"] or {},
            "cooldown_seconds": DAY if cooldown is None else cooldown,
        }
