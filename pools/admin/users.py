"""Users and groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth import admin as auth_admin
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold import admin as unfold
from unfold import forms as unfold_forms
from unfold.contrib.filters.admin import RelatedDropdownFilter

from pools.models import DirectoryAccount
from pools.platform import events, second_factor, sessions
from pools.platform.admin import columns, pages, related, row_forms
from pools.platform.admin.columns import Column

if TYPE_CHECKING:
    _Users = auth_admin.UserAdmin[User]
    _Groups = auth_admin.GroupAdmin
else:

    class _Users(auth_admin.UserAdmin, unfold.ModelAdmin):
        pass

    class _Groups(auth_admin.GroupAdmin, unfold.ModelAdmin):
        pass


for model in (User, Group):
    admin.site.unregister(model)


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


def _unheld(user: Any) -> QuerySet[Permission]:
    """Return the permissions that a user has not, and so may give to nobody; an inactive user keeps theirs."""
    held = Permission.objects.filter(Q(user=user) | Q(group__user=user))
    rows = Permission.objects.exclude(pk__in=held.values("pk"))
    return rows.none() if user.is_superuser else rows


def _groups_within(user: Any) -> QuerySet[Group]:
    """Return the groups that have no permission that a user has not."""
    rows = Group.objects.exclude(permissions__in=_unheld(user))
    for beyond in _beyond(user):
        rows = rows.exclude(beyond.groups)
    return rows


def users_within(user: Any) -> QuerySet[User]:
    """Return the users who have no right that a user has not, and this user."""
    if user.is_superuser:
        return User.objects.all()
    unheld = _unheld(user)
    more = Q(is_superuser=True) | Q(user_permissions__in=unheld) | Q(groups__permissions__in=unheld)
    for beyond in _beyond(user):
        more |= beyond.users
    return User.objects.exclude(pk__in=User.objects.filter(more).exclude(pk=user.pk).values("pk"))


class _Named(forms.ModelForm[Any]):
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


class UserChangeForm(_Named, row_forms.ModelRowForm, unfold_forms.UserChangeForm):
    """Django's form of a user, which overwrites nothing that somebody else has saved meanwhile."""


class UserAddForm(_Named, unfold_forms.UserCreationForm):
    pass


class GroupForm(_Named, row_forms.ModelRowForm):
    pass


class _Account:
    """Check the permission before the row is read, and ask before a deletion as all pages do.

    Django reads the row first, so its answer tells an unauthorized user whether the row exists.
    """

    change_form_before_template = "cadastre/model_form_version.html"

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        model_admin: Any = super()
        form = model_admin.get_form(request, obj, change=change, **kwargs)
        form.requester = request.user
        return form

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        model_admin: Any = super()
        if not model_admin.has_view_or_change_permission(request):
            raise PermissionDenied
        return model_admin.history_view(request, object_id, extra_context)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Remove bulk deletion: it does not check the permission for each row."""
        return {}

    def render_delete_form(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        return pages.django_deletion(request, context)


GROUPS = Column("groups", _("groups"), lambda user: ", ".join(map(str, user.groups.all())))


def _source(user: User) -> str:
    account: DirectoryAccount | None = getattr(user, "directory_account", None)
    return account.get_source_display() if account else gettext("this site")


@admin.register(User)
class UserAdmin(_Account, _Users):
    form = UserChangeForm
    add_form = UserAddForm
    change_password_form = unfold_forms.AdminPasswordChangeForm
    list_display = (
        columns.link("username", _("username"), ordering="username"),
        "email",
        Column("source", _("source"), _source),
        GROUPS,
        "is_staff",
        "is_superuser",
        columns.timestamp("last_login", _("last login"), ordering="last_login"),
    )
    list_filter = (
        "is_staff",
        "is_superuser",
        "is_active",
        ("groups", RelatedDropdownFilter),  # a link for each of a thousand groups would have 800 kB
        "directory_account__source",
    )
    list_filter_submit = True
    list_display_links = None  # as for other lists: the table is a third of unfold's

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        return (
            super()
            .get_queryset(request)
            .select_related("directory_account")
            .prefetch_related("groups")
        )

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer the groups that give nothing that the requester has not."""
        if db_field.name == "groups":
            kwargs["queryset"] = _groups_within(request.user).order_by("name")
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_form(  # type: ignore[override]  # as in Django's own UserAdmin
        self, request: HttpRequest, obj: User | None = None, **kwargs: Any
    ) -> Any:
        """Say on the page of a directory account that the directory decides on its rights."""
        form = super().get_form(request, obj, **kwargs)
        if obj is not None and hasattr(obj, "directory_account") and "groups" in form.base_fields:
            form.base_fields["groups"].help_text = gettext(
                "This account signs in at the directory of the organization, and each sign-in sets groups,"
                " permissions and VM ownership anew."
            )
        return form

    def user_change_password(
        self,
        request: HttpRequest,
        id: str,  # noqa: A002  # Django's name
        form_url: str = "",
    ) -> HttpResponse:
        """Refuse a password for a directory account: nobody could sign in with it."""
        user = (
            self.get_object(request, unquote(id)) if self.has_change_permission(request) else None
        )
        if user is None or not hasattr(user, "directory_account"):
            return super().user_change_password(request, id, form_url)
        self.message_user(
            request,
            gettext(
                "%(user)s signs in at the directory of the organization, without a password here."
            )
            % {"user": user},
            messages.ERROR,
        )
        return redirect("admin:auth_user_change", user.pk)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and "is_active" in form.changed_data and not obj.is_active:
            sessions.end(obj)

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        """Delete a user; the events of the tokens that end with it name the requester."""
        with events.recorded_by(pages.author(request)):
            super().delete_model(request, obj)

    def get_urls(self) -> list[URLPattern]:
        return [
            path(
                "<int:user_id>/reset-second-factor/",
                self.admin_site.admin_view(self.reset_second_factor),
                name="reset_second_factor",
            ),
            *super().get_urls(),
        ]

    def reset_second_factor(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Remove the second factor of a user who lost it."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        user = get_object_or_404(User, pk=user_id)
        if not self.has_change_permission(request, user):
            raise PermissionDenied
        back = reverse("admin:auth_user_change", args=[user_id])
        names = {"user": user.get_username()}
        if request.method != "POST":
            effects = [
                gettext("All open sessions of %(user)s end.") % names,
                gettext("%(user)s then signs in with the password alone, or enrols a new one.")
                % names,
                gettext("Make sure that it is %(user)s who asks for it.") % names,
            ]
            return pages.confirmation(
                request,
                user,
                title=gettext("Reset second factor of %(user)s") % names,
                effects=effects,
                button=gettext("Reset second factor"),
                back=back,
            )
        if second_factor.remove(user, author=pages.author(request)):
            text = gettext("The second factor of %(user)s was removed.")
            messages.success(request, text % names)
        else:
            messages.error(request, gettext("%(user)s has no second factor.") % names)
        return redirect(back)

    @admin.display(description=_("Second factor"))
    def factor(self, user: User) -> SafeString | str:
        if not second_factor.is_enrolled(user):
            return gettext("none")
        url = reverse("admin:reset_second_factor", args=[user.pk])
        return format_html('<a href="{}">{}</a>', url, gettext("Reset second factor"))

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None:
            return fieldsets
        # Dates that nobody has to change; the list shows the last login.
        shown = [part for part in fieldsets if "last_login" not in part[1]["fields"]]
        return [*shown, (_("Second factor"), {"fields": ("factor",)})]

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        """Only superusers may grant superuser status and individual permissions."""
        fixed = (*super().get_readonly_fields(request, obj), "factor")
        return fixed if request.user.is_superuser else (*fixed, "is_superuser", "user_permissions")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Return the permission to change a user; Django checks it before a password change too."""
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_touch(request, obj)


def _may_touch(request: HttpRequest, user: User | None) -> bool:
    """Return False if the user has more rights than the requester."""
    return user is None or users_within(request.user).filter(pk=user.pk).exists()


@admin.register(Group)
class GroupAdmin(_Account, _Groups):
    form = GroupForm
    list_display = (columns.link("name", _("name"), ordering="name"),)
    list_display_links = None

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest | None = None, **kwargs: Any
    ) -> Any:
        """Offer the permissions that the requester has."""
        field: Any = super().formfield_for_manytomany(db_field, request, **kwargs)
        if request is not None and db_field.name == "permissions":
            field.queryset = field.queryset.exclude(pk__in=_unheld(request.user).values("pk"))
        return field

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return super().has_change_permission(request, obj) and self._is_within(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return super().has_delete_permission(request, obj) and self._is_within(request, obj)

    @staticmethod
    def _is_within(request: HttpRequest, group: Group | None) -> bool:
        return group is None or _groups_within(request.user).filter(pk=group.pk).exists()


_USERS = related.RelatedRows(lambda _request: User.objects.all(), ("username",))
OFFERED_USERS = related.offer("users", "auth.view_user", _USERS)
