"""VM owners whom a cluster makes, and the one list of all VM owners."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Func, Value
from django.utils.translation import gettext_lazy as _

from claims.core import role_bindings
from pools.models import Cluster, Connection


class Subject(models.TextChoices):
    """Whom a RoleBinding may name, as Kubernetes writes it."""

    USER = role_bindings.USER, "user"
    GROUP = role_bindings.GROUP, "group"


class ClusterOwner(models.Model):
    """One user or group that a RoleBinding of a connected cluster names; it goes with the binding.

    Its id is drawn from the ids of memberships: one list shows both.
    """

    id = models.BigIntegerField(
        primary_key=True,
        db_default=Func(Value("claims_membership_id_seq"), function="nextval"),
    )
    connection = models.ForeignKey(
        Connection, on_delete=models.CASCADE, related_name="vm_owners", db_index=False
    )
    uid = models.CharField(max_length=64)  # of the binding
    binding = models.CharField(max_length=253)
    namespace = models.CharField(max_length=253)
    role = models.CharField(max_length=253)  # as the cluster names it
    subject_kind = models.CharField(max_length=5, choices=Subject)
    subject = models.CharField(max_length=150)
    since = models.DateTimeField()

    class Meta:
        verbose_name = _("VM owner by a cluster")
        verbose_name_plural = _("VM owners by clusters")
        default_permissions = ()
        ordering = ["connection__cluster__name", "namespace", "subject", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["connection", "uid", "subject_kind", "subject"], name="cluster_owner_unique"
            ),
        ]
        indexes = [models.Index(fields=["subject", "subject_kind"], name="cluster_owner_subject")]

    def __str__(self) -> str:
        return f"{self.subject_kind} {self.subject}: {self.role} in {self.namespace}"


class ClusterGroupMember(models.Model):
    """A user of a group of a cluster (OpenShift has them) that a binding names."""

    connection = models.ForeignKey(
        Connection, on_delete=models.CASCADE, related_name="group_members", db_index=False
    )
    group = models.CharField(max_length=150)
    username = models.CharField(max_length=150)

    class Meta:
        default_permissions = ()
        ordering = ["connection_id", "group", "username"]
        constraints = [
            models.UniqueConstraint(
                fields=["connection", "group", "username"], name="cluster_group_member_unique"
            ),
        ]
        indexes = [models.Index(fields=["username"], name="cluster_group_member_user")]

    def __str__(self) -> str:
        return f"{self.username} in {self.group}"


class MembershipSource(models.TextChoices):
    """Who made somebody a VM owner."""

    LOCAL = "local", "here"
    CLUSTER = "cluster", _("the cluster")


class AnyMembership(models.Model):
    """Memberships and what clusters say beside them (a view: claims/sql/memberships.sql).

    Of one that a cluster made, `subject_user` or `subject_group` is the name in the cluster; there
    may be nobody here of that name.
    """

    source = models.CharField(max_length=7, choices=MembershipSource)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.DO_NOTHING, null=True, related_name="+"
    )
    group = models.ForeignKey(
        "auth.Group", on_delete=models.DO_NOTHING, null=True, related_name="+"
    )
    subject_user = models.CharField(max_length=150)
    subject_group = models.CharField(max_length=150)
    cluster = models.ForeignKey(Cluster, on_delete=models.DO_NOTHING, related_name="+")
    namespaces = ArrayField(models.CharField(max_length=253))
    role = models.CharField(max_length=16)
    created_at = models.DateTimeField()
    cluster_role = models.CharField(max_length=253)
    binding = models.CharField(max_length=253)

    class Meta:
        managed = False
        db_table = "claims_anymembership"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.source} {self.pk}"
