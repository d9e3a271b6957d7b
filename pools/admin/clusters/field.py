"""The field in which a form asks for a cluster."""

from __future__ import annotations

from django import forms

from pools.models import Cluster
from pools.platform.admin.forms import select


def cluster_field() -> forms.ModelChoiceField[Cluster]:
    return forms.ModelChoiceField(Cluster.objects.order_by("name"), widget=select())
