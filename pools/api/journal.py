"""journal/: notes about objects."""

from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db.models import QuerySet

from pools.api import lookups
from pools.core import errors
from pools.models import JournalEntry, JournalKind
from pools.platform.rest import fields, filters, generics, schema
from pools.platform.rest.serializers import Representation, Serializer
from pools.register import journal

_TYPES = tuple(subject.name for subject in journal.SUBJECTS)
_MOST_ID = (1 << 63) - 1


class JournalEntrySerializer(Representation):
    """A note about an object, with its author."""

    id = fields.IntegerField()
    object_type = fields.ChoiceField(_TYPES, source="content_type.model")
    object_id = fields.IntegerField()
    cluster = fields.TextField(source="cluster.name", allow_null=True)
    kind = fields.ChoiceField(JournalKind.values)
    text = fields.NoteField()
    author = fields.TextField()
    created_at = fields.TimeField()


class JournalEntryCreateSerializer(Serializer):
    """A new note; its author is the user of the request."""

    object_type = fields.ChoiceField(_TYPES)
    object_id = fields.IntegerField(min_value=1, max_value=_MOST_ID)
    kind = fields.ChoiceField(JournalKind.values, required=False, default=JournalKind.INFO)
    text = fields.NoteField()


class JournalFilter(filters.FilterSet):
    object_type = filters.choice(*_TYPES, method="filter_type")
    object_id = filters.integer(1, _MOST_ID)
    cluster = filters.Filter("parse_cluster", help_text="Name or id.")
    kind = filters.choice(*JournalKind.values)
    author = filters.Filter(help_text="The exact name.")

    def parse_cluster(self, value: str, name: str) -> int:
        if self.request.user.has_perm("pools.view_cluster"):
            return lookups.cluster(value, name).pk
        # For others an unknown cluster is the same as one without notes that they may see.
        cluster = lookups.find_cluster(value)
        return cluster.pk if cluster else 0

    def filter_type(
        self, rows: QuerySet[JournalEntry], _name: str, name: str
    ) -> QuerySet[JournalEntry]:
        model = journal.find_subject(name).model
        return rows.filter(content_type=ContentType.objects.get_for_model(model))


class Journal(generics.ModelViewSet):
    """Notes about clusters, pools and networks."""

    needs = {"GET": (), "POST": (), "DELETE": ()}
    queryset = JournalEntry.objects.select_related("content_type")
    serializer_class = JournalEntrySerializer
    create_serializer_class = JournalEntryCreateSerializer
    filterset_class = JournalFilter
    lookup_url_kwarg = "note_id"
    row_text = "A note."

    def get_queryset(self) -> QuerySet[Any]:
        user = self.request.user
        if not journal.reads_journals(user):
            raise errors.NotAllowed(
                "This needs the permission to view clusters, pools or networks."
            )
        return journal.visible_entries(user).select_related("content_type", "cluster")

    @schema.example(
        {
            "object_type": "pool",
            "object_id": 1,
            "kind": "warning",
            "text": "Ask Ann before changes.",
        },
        "about a pool",
    )
    def perform_create(self, values: dict[str, Any]) -> JournalEntry:
        """Add a note; requires the permission to change the object."""
        return journal.add(**values, user=self.request.user, author=self.author())

    def check_values(self, values: dict[str, Any], row: Any = None) -> None:
        name, object_id = values.pop("object_type"), values.pop("object_id")
        subject = journal.find_subject(name)
        generics.require(self.request, subject.permission("change"))
        values["row"] = subject.rows(self.request.user).filter(pk=object_id).first()
        if values["row"] is None:
            raise errors.InvalidInput.for_field(
                "object_id", f"unknown_{name}", f"there is no such {name}", object_id
            )

    def perform_destroy(self, entry: JournalEntry) -> None:
        """Delete a note: an own one, or with the permission to delete all."""
        journal.delete(entry, user=self.request.user, author=self.author())
