"""The journal of clusters, pools, network containers and networks: notes that people write about an object over time.

Whoever may see an object reads its journal; whoever may change it writes there. A note is deleted by its
author, or with the permission `pools.delete_journalentry`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.db.models import Q, QuerySet

from pools.core import errors
from pools.models import Cluster, JournalEntry
from pools.platform import database, events

DELETE_ANY = "pools.delete_journalentry"


@dataclass(frozen=True)
class Subject:
    """A kind of object that has a journal; its name in REST is the model's.

    `visible` returns those of the rows that a user with the permission to view the kind may see.
    """

    model: type[models.Model]
    visible: Callable[[QuerySet[Any], Any], QuerySet[Any]] = lambda rows, _user: rows

    @property
    def name(self) -> str:
        return str(self.model._meta.model_name)

    def permission(self, verb: str) -> str:
        return f"{self.model._meta.app_label}.{verb}_{self.name}"

    def rows(self, user: Any) -> QuerySet[Any]:
        """Return the objects that a user may see."""
        rows = self.model._default_manager.all()
        if not user.has_perm(self.permission("view")):
            return rows.none()
        return self.visible(rows, user)


SUBJECTS: list[Subject] = []  # filled by pools.extension


def find_subject(name: str) -> Subject:
    """Return the subject with this name. Raises NotFound."""
    for subject in SUBJECTS:
        if subject.name == name:
            return subject
    raise errors.NotFound("There is no such journal.")


def entries_of(row: models.Model) -> QuerySet[JournalEntry]:
    """Return the notes about an object, the newest first."""
    content_type = ContentType.objects.get_for_model(row)
    return JournalEntry.objects.filter(content_type=content_type, object_id=row.pk)


def visible_entries(user: Any) -> QuerySet[JournalEntry]:
    """Return the notes about all objects that a user may see."""
    visible = Q(pk__in=[])
    for subject in SUBJECTS:
        if user.has_perm(subject.permission("view")):
            content_type = ContentType.objects.get_for_model(subject.model)
            visible |= Q(content_type=content_type, object_id__in=subject.rows(user).values("pk"))
    return JournalEntry.objects.filter(visible).select_related("cluster")


def reads_journals(user: Any) -> bool:
    """Return True if the user may see objects of any kind that has a journal."""
    return any(user.has_perm(subject.permission("view")) for subject in SUBJECTS)


def may_write(user: Any, row: models.Model) -> bool:
    return bool(user.has_perm(find_subject(str(row._meta.model_name)).permission("change")))


def may_delete(user: Any, entry: JournalEntry) -> bool:
    return entry.user_id == user.pk or bool(user.has_perm(DELETE_ANY))


def add(row: Any, text: str, kind: str, *, user: Any, author: events.Author) -> JournalEntry:
    """Add a note about an object; `user` may delete it. Raises NotFound if the object was deleted."""
    with events.recorded_by(author):
        # A deletion of the object, which deletes its notes, waits for this transaction.
        rows = type(row)._default_manager.select_for_update(no_key=True)
        if not rows.filter(pk=row.pk).exists():
            raise errors.NotFound("There is no such object.")
        return JournalEntry.objects.create(
            cluster=row if isinstance(row, Cluster) else row.cluster,
            subject=row,
            kind=kind,
            text=text,
            user=user,
            author=author.actor,
            created_at=database.now(),
        )


def delete(entry: JournalEntry, *, user: Any, author: events.Author) -> None:
    """Delete a note. Raises NotAllowed if it is another user's."""
    if not may_delete(user, entry):
        raise errors.NotAllowed("Only its author or an administrator deletes a journal entry.")
    with events.recorded_by(author):
        entry.delete()
