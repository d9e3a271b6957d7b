"""Sign-in of persons whom a directory of the organization has authenticated (OpenID Connect, LDAP).

The directory alone decides on the rights of its accounts: each sign-in sets roles and memberships anew to
what the groups of the person grant. An account whose groups grant nothing loses its tokens too.
"""

import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.utils.translation import gettext
from knox.models import AuthToken

from claims.access import memberships
from claims.core import directory_groups
from claims.core.directory_groups import Grants, GroupMapping
from pools.models import Cluster, DirectoryAccount, Now
from pools.platform import events, sessions

_LONGEST_EMAIL = 254  # of Django's users


@dataclass(frozen=True)
class Person:
    """A person as the directory describes it; `subject` identifies the person in it for ever.

    `former_subject` was the subject while accounts were recognized by the login name, "" if they never were;
    `created_at` is the age of the directory's entry.
    """

    source: str
    subject: str
    username: str
    email: str = ""
    groups: Sequence[str] = ()
    former_subject: str = ""
    created_at: datetime | None = None


class SignInRefused(Exception):
    """A person whom the directory has authenticated may not sign in; `message` is for this person."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def group_mapping() -> GroupMapping:
    """Return what groups grant, by the settings. Raises ValueError."""
    return _parse_mapping(settings.IPAM_SIGN_ON_ROLES, settings.IPAM_SIGN_ON_NAMESPACES)


_parse_mapping = functools.lru_cache(maxsize=8)(directory_groups.parse_mapping)


def sign_in(person: Person, *, request_id: str = "") -> User:
    """Return the account of a person, with the rights of the person's groups; the first sign-in creates it.

    Raises SignInRefused, after the rights of the account were taken away if no group grants any.
    """
    # As Django stores names: what looks like the name of another account is that name.
    person = replace(person, username=User.normalize_username(person.username))
    _require_valid_name(person)
    author = events.Author(actor=person.username, source="sign-on", request_id=request_id)
    grants = group_mapping().grants(person.groups)
    try:
        return _sign_in(person, grants, author)
    except IntegrityError:  # somebody else has just taken the name
        raise _refused("account_exists", person) from None


def _sign_in(person: Person, grants: Grants, author: events.Author) -> User:
    with events.recorded_by(author):
        account = _lock_account(person)
        if account.user is None and person.former_subject and person.created_at:
            _take_over(account, person)
        namespaces = _namespaces_by_cluster(grants)
        code = _refusal(person, account, has_rights=bool(grants.roles or namespaces))
        if code:
            _record_refusal(account, code, author)
        else:
            user = account.user or _create_user(account)
            _set_rights(user, grants, namespaces, author)
            if not _is_taken(person.username, user.pk):
                user.username = person.username  # by which clusters name VM owners
            is_storable = person.email.isprintable() and len(person.email) <= _LONGEST_EMAIL
            user.email = person.email if is_storable else ""
            user.save(update_fields=["username", "email"])
            _record(account, person, sorted(grants.roles), user)
    if code:
        raise _refused(code, person)
    return User.objects.get(pk=user.pk)  # without permissions from before


def _lock_account(person: Person) -> DirectoryAccount:
    """Return the account of the person, which no other sign-in changes until the transaction ends."""
    key = {"source": person.source, "subject": person.subject}
    DirectoryAccount.objects.bulk_create(
        [DirectoryAccount(**key, username=person.username)], ignore_conflicts=True
    )
    return DirectoryAccount.objects.select_for_update().get(**key)


def _take_over(account: DirectoryAccount, person: Person) -> None:
    """Give the person the account that has been recognized by the same login name until now.

    Not from an account that is older than the directory's entry: it was made for another entry, of somebody who
    had the login name before. Nor one that was switched off, because its owner may have left. Once taken over, the
    account no longer follows the name. The deletion and the change are events.
    """
    former = (
        DirectoryAccount.objects.select_for_update(of=("self",))
        .select_related("user")
        .filter(source=person.source, subject=person.former_subject)
        .filter(user__is_active=True, user__date_joined__gte=person.created_at)
        .first()
    )
    if former is not None:
        former.delete()
        account.user = former.user  # saved with the outcome of the sign-in


def _refusal(person: Person, account: DirectoryAccount, *, has_rights: bool) -> str:
    """Return the code of what forbids the sign-in, or ""."""
    if account.user is None:
        if _is_taken(person.username):
            return "account_exists"
    elif not account.user.is_active:
        return "account_inactive"
    return "" if has_rights else "no_group"


def _is_taken(username: str, user_id: int = 0) -> bool:
    """Return True if another user has the name; in other letters it would be read as the same person's."""
    return User.objects.exclude(pk=user_id).filter(username__iexact=username).exists()


def _require_valid_name(person: Person) -> None:
    try:
        User._meta.get_field("username").run_validators(person.username)
    except ValidationError:
        raise _refused("username_not_allowed", person) from None
    if not person.username:
        raise _refused("username_not_allowed", person)


def _refused(code: str, person: Person) -> SignInRefused:
    texts = {
        "username_not_allowed": gettext(
            "The user name %(name)s of the directory cannot be used here: it may have letters, digits and @ . + - _."
        ),
        "account_exists": gettext(
            "An account %(name)s exists here that does not belong to you in the directory. An administrator must"
            " rename or delete it first."
        ),
        "account_inactive": gettext("The account %(name)s is not active."),
        "no_group": gettext(
            "The account %(name)s belongs to no group of the directory that may use this site. Ask for a group"
            " that has access, then sign in again."
        ),
    }
    return SignInRefused(code, texts[code] % {"name": person.username})


def _record_refusal(account: DirectoryAccount, code: str, author: events.Author) -> None:
    """Record the refusal; an account without a group loses its rights, sessions and tokens."""
    if account.user is not None and code == "no_group":
        _set_rights(account.user, Grants(), {}, author)
        sessions.end(account.user)
        AuthToken.objects.filter(user=account.user).delete()
        account.roles = []
    account.refusal = code
    account.refused_at = Now()
    account.save()


def _record(account: DirectoryAccount, person: Person, roles: list[str], user: User) -> None:
    """Record a sign-in; an event is written only if something differs from the last one."""
    account.user, account.username, account.roles = user, person.username, roles
    account.refusal, account.refused_at = "", None
    account.save()


def _create_user(account: DirectoryAccount) -> User:
    user = User(username=account.username)
    user.set_unusable_password()
    user.save()
    return user


def _set_rights(
    user: User,
    grants: Grants,
    namespaces: Mapping[Cluster, list[str]],
    author: events.Author,
) -> None:
    """Set roles and memberships of a user to exactly these; other permissions are taken away."""
    user.groups.set(Group.objects.filter(name__in=grants.roles))
    user.user_permissions.clear()
    user.is_superuser = False
    user.is_staff = bool(grants.roles)
    user.save(update_fields=["is_superuser", "is_staff"])
    memberships.set_namespaces(user, namespaces, author=author)
    if namespaces:
        memberships.add_to_role(user)  # also for memberships that existed


def _namespaces_by_cluster(grants: Grants) -> dict[Cluster, list[str]]:
    """Return the granted namespaces, sorted, by existing cluster."""
    names: defaultdict[Cluster, set[str]] = defaultdict(set)
    if grants.namespaces:
        for cluster in Cluster.objects.all():
            for name, namespace in grants.namespaces:
                if name in {"", cluster.name}:
                    names[cluster].add(namespace)
    return {cluster: sorted(namespaces) for cluster, namespaces in names.items()}
