"""VM owners: memberships, those that RoleBindings of clusters make, and the list of all of them."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Func, Q, Value
from django.utils.translation import gettext_lazy as _

from claims.core import directory_groups
from pools.models import Cluster, Connection


class SubjectKind(models.TextChoices):
    """Kinds of subjects of a RoleBinding that are read here; values as in Kubernetes."""

    USER = directory_groups.USER, _("user")
    GROUP = directory_groups.GROUP, _("group")


class ClusterOwner(models.Model):
    """A user or a group that a RoleBinding of a connected cluster makes a VM owner.

    The row is deleted when its binding is. Its id comes from the sequence of memberships, because
    one list shows both.
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
    namespace = models.CharField(_("namespace"), max_length=253)
    role = models.CharField(max_length=253)  # name of the Role or ClusterRole
    subject_kind = models.CharField(max_length=5, choices=SubjectKind)
    subject = models.CharField(max_length=150)
    since = models.DateTimeField()

    class Meta:
        verbose_name = _("VM owner from a cluster")
        verbose_name_plural = _("VM owners from clusters")
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
    """A member of a cluster's group that a RoleBinding names (OpenShift has such groups)."""

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
    """Where a VM owner was defined."""

    LOCAL = "local", _("local")
    CLUSTER = "cluster", _("cluster")


class AnyMembership(models.Model):
    """A membership, or a VM owner from a cluster (a view: claims/sql/memberships.sql).

    For one from a cluster, `subject_user` or `subject_group` is the name in the cluster; no user or
    group of that name need exist here.
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

    @property
    def user_name(self) -> str:
        """The user's name here or in the cluster; empty for a group."""
        return self.user.get_username() if self.user else self.subject_user

    @property
    def group_name(self) -> str:
        """The group's name here or in the cluster; empty for a user."""
        return self.group.name if self.group else self.subject_group


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
        return f"{self.user or f'group {self.group}'} in {self.cluster}"
