"""What users may do, in words: their role, what they own beside it, what they see and change; their own page (profile)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _
from django_stubs_ext import StrOrPromise
from knox.models import AuthToken
from unfold.widgets import UnfoldAdminTextInputWidget

from pools.models import Cluster, Preferences, time_zones
from pools.platform import events, second_factor
from pools.platform.admin import forms as fields, pages, related

SUPERUSER = "superuser"
# Each has the rights of the roles before it; a role is the group of its name.
ROLES: dict[str, StrOrPromise] = {
    "viewer": _("Viewer: sees everything, changes nothing"),
    "operator": _("Operator: allocates, releases, changes pools and VM networks"),
    "administrator": _("Administrator: also clusters, credentials, users, tokens, webhooks"),
}
_NAMES: dict[str, StrOrPromise] = {
    "viewer": _("viewer"),
    "operator": _("operator"),
    "administrator": _("administrator"),
    SUPERUSER: _("superuser"),
}


@dataclass(frozen=True)
class Ownership:
    """What an app lets users own beside their role: namespaces, named `cluster/namespace`.

    `group` gives its rights and is joined by owning; `permissions` are needed to change what a user owns, `related`
    is read with a list of users. `names` are those that are set here, `described` all of them in words.
    """

    group: str
    offered: str
    permissions: tuple[str, ...]
    related: str
    names: Callable[[User], list[str]]
    described: Callable[[User], list[str]]
    parse: Callable[[str], Any]
    save: Callable[[User, Iterable[Any], events.Author], None]


OWNERSHIPS: list[Ownership] = []  # at most one, that of VM networks


def role_of(user: User) -> str:
    """Return the role of a user, the highest of several; "" without one."""
    names = {group.name for group in user.groups.all()} if user.pk else set()
    return (
        SUPERUSER if user.is_superuser else ([role for role in ROLES if role in names] or [""])[-1]
    )


def role_label(user: User) -> str:
    """Return in words what a user is, such as `operator, VM owner`, with the names of further groups."""
    names = [str(_NAMES[role])] if (role := role_of(user)) else []
    owned = {ownership.group for ownership in OWNERSHIPS}
    groups = sorted(group.name for group in user.groups.all() if group.name not in ROLES)
    names += [gettext("VM owner") if name in owned else name for name in groups]
    return ", ".join(names) or gettext("none")


def owned_names(user: User) -> list[str]:
    """Return the names of what a user owns by what is set here; a user who is not saved yet owns nothing."""
    return [name for own in OWNERSHIPS if user.pk for name in own.names(user)]


def other_groups(rows: QuerySet[Group]) -> QuerySet[Group]:
    """Return the groups that are neither a role nor joined by owning something."""
    return rows.exclude(name__in=[*ROLES, *(ownership.group for ownership in OWNERSHIPS)])


# --- whom a user may change, and what a user may give ----------------------------------------------


@dataclass(frozen=True)
class Beyond:
    """Whom a user may not change although their permissions are no more, and the names that give rights to their bearers."""

    users: Q
    groups: Q
    is_username: Callable[[str], bool]
    is_group_name: Callable[[str], bool]


BEYOND: list[Callable[[Any], Beyond | None]] = []  # of other apps, by the user who changes others


def _beyond(user: Any) -> list[Beyond]:
    found = [] if user.is_superuser else [find(user) for find in BEYOND]
    return [beyond for beyond in found if beyond is not None]


def unheld(user: Any) -> QuerySet[Permission]:
    """Return the permissions that a user has not, and so may give to nobody; an inactive user keeps theirs."""
    held = Permission.objects.filter(Q(user=user) | Q(group__user=user))
    rows = Permission.objects.exclude(pk__in=held.values("pk"))
    return rows.none() if user.is_superuser else rows


def groups_within(user: Any) -> QuerySet[Group]:
    """Return the groups that have no permission that a user has not."""
    rows = Group.objects.exclude(permissions__in=unheld(user))
    for beyond in _beyond(user):
        rows = rows.exclude(beyond.groups)
    return rows


def users_within(user: Any) -> QuerySet[User]:
    """Return the users who have no right that a user has not, and this user."""
    if user.is_superuser:
        return User.objects.all()
    lacking = unheld(user)
    more = (
        Q(is_superuser=True) | Q(user_permissions__in=lacking) | Q(groups__permissions__in=lacking)
    )
    for beyond in _beyond(user):
        more |= beyond.users
    return User.objects.exclude(pk__in=User.objects.filter(more).exclude(pk=user.pk).values("pk"))


def _lasting_superusers() -> QuerySet[User]:
    """Return the superusers who can sign in and stay it: a directory sets the rights of its users at each sign-in."""
    rows = User.objects.filter(is_superuser=True, is_active=True, is_staff=True)
    return rows.filter(directory_account=None).order_by("pk")


def lock_superusers() -> None:
    """Let nobody else take away a superuser until the transaction ends. Call it before another user is locked."""
    list(_lasting_superusers().select_for_update(of=("self",), no_key=True))


def is_last_superuser(user: User) -> bool:
    """Return True if nobody else stays a superuser."""
    return [row.pk for row in _lasting_superusers()] == [user.pk]


def is_needed_group(group: Group) -> bool:
    """Return True if pages and sign-in know the group by its name: a role, or what owners of something join."""
    return not other_groups(Group.objects.filter(pk=group.pk)).exists()


class Named(forms.ModelForm[Any]):
    """Refuses a new name of a user or group that would give it rights which the `requester` has not."""

    requester: Any = None

    def clean(self) -> Any:
        values = super().clean()
        for beyond in _beyond(self.requester):
            for field, gives in (("username", beyond.is_username), ("name", beyond.is_group_name)):
                name = self.cleaned_data.get(field)
                if name and field in self.changed_data and gives(name):
                    message = gettext("A cluster gives rights to this name that you do not have.")
                    self.add_error(field, message)
        return values


# --- what a user may see --------------------------------------------------------------------------


def rights(user: User) -> SafeString:
    """Return what a user sees and may change, as HTML; of what has a page."""
    kinds = _kinds(user)
    clusters = [gettext("those of the namespaces, by name")]
    if user.has_perm("pools.view_cluster"):
        clusters = [gettext("all %(number)d") % {"number": Cluster.objects.count()}]
    rows = (
        (gettext("Role"), [role_label(user)]),
        (gettext("Clusters"), clusters if kinds["view"] else []),
        (
            gettext("Namespaces of VMs"),
            [name for ownership in OWNERSHIPS for name in ownership.described(user)],
        ),
        (gettext("Sees"), kinds["view"]),
        (gettext("Adds, changes or deletes"), kinds["change"]),
        (gettext("May also"), kinds["more"]),
    )
    return render_to_string("cadastre/rights.html", {"rows": rows})


def _kinds(user: User) -> dict[str, list[str]]:
    """Return the kinds of rows that a user may `view` and `change`, and what else the user may do (`more`)."""
    kinds: dict[str, set[str]] = {"view": set(), "change": set(), "more": set()}
    held = user.get_all_permissions()
    for permission in Permission.objects.select_related("content_type"):
        app, verb = permission.content_type.app_label, permission.codename.partition("_")[0]
        model: Any = permission.content_type.model_class()
        if f"{app}.{permission.codename}" not in held or model is None:
            continue
        if verb not in _VERBS:
            kinds["more"].add(permission.name.removeprefix("Can "))
        elif admin.site.is_registered(model):
            kinds[_VERBS[verb]].add(str(model._meta.verbose_name_plural))
    return {name: sorted(names) for name, names in kinds.items()}


_VERBS = {"view": "view", "add": "change", "change": "change", "delete": "change"}


# --- fields of the forms of users -----------------------------------------------------------------


class AccessFields(forms.Form):
    """The role, the groups and the namespaces of a user; `requester` sees those that they may give."""

    requester: Any
    instance: User
    role = forms.ChoiceField(label=_("Role"), required=False, widget=fields.select())
    namespaces = forms.CharField(
        label=_("Namespaces"),
        required=False,
        widget=fields.lines(2, placeholder="prod/shop"),
        help_text=_("The user owns the VMs of these, one per line: cluster/namespace."),
    )
    add_namespace = forms.CharField(label=_("Add namespace"), required=False)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._offer()

    def clean(self) -> Any:
        values = super().clean()
        self._apply_role()
        self._parse_namespaces()
        return values

    def _offer(self) -> None:
        """Offer the roles that give nothing else than the requester has, and namespaces to who may give them."""
        self.ownership = ownership_of(self.requester)
        offered = set(groups_within(self.requester).values_list("name", flat=True))
        superuser = [(SUPERUSER, _("Superuser: everything"))]
        role: Any = self.fields["role"]
        role.choices = [
            ("", _("None, but for namespaces and groups")),
            *((name, label) for name, label in ROLES.items() if name in offered),
            *(superuser if self.requester.is_superuser else ()),
        ]
        role.initial = role_of(self.instance)
        self.fields["namespaces"].initial = "\n".join(owned_names(self.instance))
        if self.ownership is None:
            del self.fields["namespaces"], self.fields["add_namespace"]
        else:
            widget = related.name_widget(self.ownership.offered, placeholder="prod/shop")
            self.fields["add_namespace"].widget = widget

    def _apply_role(self) -> None:
        """Put the group of the role, and those joined by owning, beside the chosen groups."""
        role = self.cleaned_data.get("role", "")
        stays = [own.group for own in OWNERSHIPS if self.instance.pk]
        joined = Q(user=self.instance.pk, name__in=stays)
        chosen = Q(pk__in=[group.pk for group in self.cleaned_data.get("groups", ())])
        self.cleaned_data["groups"] = Group.objects.filter(
            chosen | joined | Q(name=role)
        ).distinct()
        if self.requester.is_superuser:
            self.instance.is_superuser = role == SUPERUSER

    def _parse_namespaces(self) -> None:
        """Replace the typed namespaces by what they name; an error is at its field."""
        for name in ("namespaces", "add_namespace"):
            if self.ownership is None or name not in self.cleaned_data:
                continue
            words = self.cleaned_data[name].replace(",", " ").split()
            with pages.errors_at_field(self, name):
                self.cleaned_data[name] = [self.ownership.parse(word) for word in words]

    def save_access(self, author: events.Author) -> None:
        """Give the saved user the groups of the form and its namespaces, and no other ones."""
        self.instance.groups.set(self.cleaned_data["groups"])
        if self.ownership is not None:
            names = [*self.cleaned_data["namespaces"], *self.cleaned_data["add_namespace"]]
            self.ownership.save(self.instance, names, author)
            # Who begins to own something may sign in, unless the form says that the user may not.
            if self.instance.is_staff and not self.cleaned_data.get("is_staff", True):
                self.instance.is_staff = False
                self.instance.save(update_fields=["is_staff"])


def ownership_of(requester: Any) -> Ownership | None:
    """Return what the requester may let others own, or None."""
    return next((own for own in OWNERSHIPS if requester.has_perms(own.permissions)), None)


_MOST = 10  # tokens


class ProfileForm(forms.ModelForm[User]):
    time_zone = forms.ChoiceField(
        label=_("Time zone"),
        required=False,
        widget=fields.select(),
        help_text=_(
            "Pages show times in it, and forms read them in it. Exports and the API use UTC."
        ),
    )

    class Meta:
        model = User
        fields = ("first_name", "last_name", "email")
        widgets = dict.fromkeys(fields, UnfoldAdminTextInputWidget)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        zone: Any = self.fields["time_zone"]
        zone.choices = [
            ("", _("that of the browser")),
            *((name, name) for name in sorted(time_zones())),
        ]
        if second_factor.is_of_directory(self.instance):
            del self.fields["email"]  # each sign-in sets it anew


def profile(request: HttpRequest) -> HttpResponse:
    """Show the profile of the user; by POST, save it."""
    user: Any = request.user
    preferences = Preferences.objects.filter(user=user).first() or Preferences(user=user)
    row = User.objects.get(pk=user.pk)
    form = ProfileForm(
        request.POST or None, instance=row, initial={"time_zone": preferences.time_zone}
    )
    if request.method == "POST" and form.is_valid():
        form.save()
        preferences.time_zone = form.cleaned_data["time_zone"]
        preferences.save()
        return pages.done(request, gettext("Your profile was saved."), "admin:profile")
    tokens = AuthToken.objects.filter(user_id=user.pk).select_related("use", "scope")
    return pages.page(
        request,
        "profile.html",
        title=gettext("Profile of %(user)s") % {"user": user},
        form=form,
        is_local=second_factor.is_possible(user),
        has_factor=second_factor.is_enrolled(user),
        tokens=tokens.order_by("-created")[:_MOST],
        rights=rights(row),
    )
