"""The journal: notes of users about objects."""

from django.conf import settings
from django.contrib.contenttypes.fields import GenericForeignKey
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.utils.translation import gettext_lazy as _


class JournalKind(models.TextChoices):
    """How important a note is."""

    INFO = "info", _("info")
    SUCCESS = "success", _("success")
    WARNING = "warning", _("warning")
    DANGER = "danger", _("danger")


class JournalEntry(models.Model):
    """A note about an object of a cluster or of the fleet, or about a cluster itself.

    An object that has a journal declares a GenericRelation, so that its notes are deleted with it. The
    events of the notes stay.
    """

    # None: the note is about an object of the fleet.
    cluster = models.ForeignKey(
        "pools.Cluster", on_delete=models.CASCADE, null=True, related_name="+"
    )
    content_type = models.ForeignKey(
        ContentType, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    object_id = models.PositiveBigIntegerField()
    subject = GenericForeignKey("content_type", "object_id")
    kind = models.CharField(max_length=7, choices=JournalKind, default=JournalKind.INFO)
    text = models.TextField()
    # The user who may delete the note; the name stays when the user is deleted.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    author = models.CharField(max_length=150)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("journal entry")
        verbose_name_plural = _("journal entries")
        ordering = ["-id"]
        default_permissions = ("delete",)
        indexes = [
            models.Index(fields=["content_type", "object_id", "id"], name="journal_entry_subject")
        ]

    def __str__(self) -> str:
        return f"{self.author}: {self.text[:40]}"
