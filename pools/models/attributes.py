"""What people add to objects: tags, an owner, and custom fields with their definitions."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.utils.translation import gettext_lazy as _

ATTRIBUTES = ("tags", "owner", "custom_fields")


class Attributed(models.Model):
    """The attributes that users define: `custom_fields` has canonical texts by the names of their fields."""

    tags = ArrayField(models.CharField(max_length=50), default=list, db_default=[], blank=True)
    owner = models.CharField(_("owner"), max_length=253, blank=True, default="", db_default="")
    custom_fields = models.JSONField(default=dict, db_default={}, blank=True)

    class Meta:
        abstract = True


def attribute_indexes(table: str) -> list[models.Index]:
    """Return the indexes of the attributes of a table."""
    return [
        GinIndex(fields=["tags"], name=f"{table}_tags"),
        GinIndex(fields=["custom_fields"], name=f"{table}_custom_fields"),
        models.Index(fields=["owner"], name=f"{table}_owner", condition=~models.Q(owner="")),
    ]


class CustomFieldType(models.TextChoices):
    """The type of a custom field, by which `pools.core.custom_fields.parse_value` reads its values."""

    TEXT = "text", _("text")
    NUMBER = "number", _("number")
    CHOICE = "choice", _("choice")
    LINK = "link", _("link")


class CustomField(models.Model):
    """A field that an administrator defined for some kinds of objects."""

    name = models.CharField(max_length=50)
    label = models.CharField(max_length=100)
    type = models.CharField(max_length=6, choices=CustomFieldType)
    choices = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    object_types = ArrayField(models.CharField(max_length=20))
    required = models.BooleanField(default=False)
    description = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("custom field")
        verbose_name_plural = _("custom fields")
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"],
                name="custom_field_name_unique",
                violation_error_code="already_exists",
                violation_error_message=_("There is a custom field with this name."),
            )
        ]

    def __str__(self) -> str:
        return self.label
