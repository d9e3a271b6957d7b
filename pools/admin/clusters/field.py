"""The form field for a cluster, and the choices of filters by cluster."""

from __future__ import annotations

from collections.abc import Iterable

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from pools.models import Cluster
from pools.platform.admin.forms import select


def cluster_field() -> forms.ModelChoiceField[Cluster]:
    return forms.ModelChoiceField(
        Cluster.objects.order_by("name"), label=_("Cluster"), widget=select()
    )


def cluster_choices(_request: HttpRequest) -> Iterable[tuple[int, str]]:
    return Cluster.objects.values_list("pk", "name")
