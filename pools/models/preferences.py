"""What users choose for the lists of the admin site: columns, and filters under a name."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _


class ListColumns(models.Model):
    """The columns that a user sees in a list, in their order. `list` is its model: `pools.block`."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    list = models.CharField(max_length=100)
    columns = ArrayField(models.CharField(max_length=100))

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["user", "list"], name="list_columns_unique"),
            models.CheckConstraint(condition=models.Q(columns__len__gt=0), name="list_has_columns"),
        ]

    def __str__(self) -> str:
        return f"{self.list}: {', '.join(self.columns)}"


class SavedFilter(models.Model):
    """The filters, search and order of a list under a name; everybody who sees the list sees a shared one."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    list = models.CharField(max_length=100)
    name = models.CharField(max_length=80)
    # A query string, which orders by the names of columns.
    query = models.CharField(max_length=2000, blank=True, default="")
    shared = models.BooleanField(default=False)

    class Meta:
        verbose_name = _("saved filter")
        verbose_name_plural = _("saved filters")
        default_permissions = ("change",)
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "list", "name"],
                name="saved_filter_name_unique",
                violation_error_code="already_exists",
                violation_error_message=_("You have a filter with this name for this list."),
            )
        ]

    def __str__(self) -> str:
        return self.name
