"""The form field for a cluster."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from pools.models import Cluster
from pools.platform.admin.forms import select


def cluster_field() -> forms.ModelChoiceField[Cluster]:
    return forms.ModelChoiceField(
        Cluster.objects.order_by("name"), label=_("Cluster"), widget=select()
    )
