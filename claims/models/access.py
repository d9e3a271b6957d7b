from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from pools.models import Cluster


class Role(models.TextChoices):
    """Roles of a user or a group in namespaces of a cluster."""

    VM_OWNER = "vm-owner", _("VM owner")


class Membership(models.Model):
    """The role of a user, or of all users of a group, in namespaces of a cluster."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="memberships",
    )
    group = models.ForeignKey(
        "auth.Group", on_delete=models.CASCADE, null=True, blank=True, related_name="memberships"
    )
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="memberships")
    namespaces = ArrayField(models.CharField(max_length=63))
    role = models.CharField(max_length=16, choices=Role, default=Role.VM_OWNER)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("VM owner")
        verbose_name_plural = _("VM owners")
        ordering = ["cluster__name", "user__username", "group__name"]
        constraints = [
            models.CheckConstraint(
                name="membership_of_a_user_or_a_group",
                condition=Q(user__isnull=False, group=None) | Q(user=None, group__isnull=False),
                violation_error_message=_("Select either a user or a group."),
            ),
            models.UniqueConstraint(
                fields=["user", "cluster", "role"],
                name="membership_user_unique",
                violation_error_code="already_exists",
            ),
            models.UniqueConstraint(
                fields=["group", "cluster", "role"],
                name="membership_group_unique",
                violation_error_code="already_exists",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user or self.group}: {self.role} in {self.cluster}"
