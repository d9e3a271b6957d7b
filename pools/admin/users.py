"""Users and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth import admin as auth_admin
from django.contrib.auth.models import Group, User
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _
from unfold import admin as unfold, forms as unfold_forms
from unfold.contrib.filters.admin import RelatedDropdownFilter

from pools.admin import access
from pools.models import DirectoryAccount, WebhookTarget
from pools.platform import events, second_factor, sessions
from pools.platform.admin import columns, display, large_tables, pages, related, row_forms
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


class UserChangeForm(
    access.AccessFields, access.Named, row_forms.ModelRowForm, unfold_forms.UserChangeForm
):
    """Django's form of a user, which overwrites nothing that somebody else has saved meanwhile."""

    def _read(self, row: User) -> Any:
        names = "\n".join(access.owned_names(row))
        return {**super()._read(row), "role": access.role_of(row), "namespaces": names}

    def clean(self) -> Any:
        """Refuse to lock the requester out, or the last superuser."""
        was_superuser = self.fields["role"].initial == access.SUPERUSER
        if was_superuser:
            access.lock_superusers()
        values = super().clean()
        closed = [name for name in ("is_active", "is_staff") if not self.cleaned_data.get(name)]
        if self.instance.pk == self.requester.pk:
            for name in closed:
                self.add_error(name, gettext("You cannot lock yourself out."))
        is_superuser = self.instance.is_superuser and not closed
        if was_superuser and not is_superuser and access.is_last_superuser(self.instance):
            self.add_error("role", _last_superuser())
        return values


class UserAddForm(access.AccessFields, access.Named):
    """A user without a password, who sets one by a link; a service account does not sign in."""

    class Meta:
        model = User
        fields = ("username", "email", "is_staff")

    def clean_username(self) -> str:
        """Refuse a name that differs from another one in capitals only, as Django's form does."""
        name: str = self.cleaned_data["username"]
        if User.objects.filter(username__iexact=name).exists():
            raise forms.ValidationError(gettext("A user with that username already exists."))
        return name

    def save(self, commit: bool = True) -> User:
        self.instance.set_unusable_password()
        user: User = super().save(commit)
        return user


class GroupForm(access.Named, row_forms.ModelRowForm):
    def clean_name(self) -> str:
        """Refuse another name for a group that is known by its name."""
        name: str = self.cleaned_data["name"]
        if (
            self.instance.pk
            and name != self.initial["name"]
            and access.is_needed_group(self.instance)
        ):
            raise forms.ValidationError(
                gettext("Users get their role by this group, so its name stays.")
            )
        return name


def _last_superuser() -> str:
    return gettext("This is the only superuser. Make somebody else a superuser first.")


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

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[ChangeList]:
        return large_tables.TextList

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Remove bulk deletion: it does not check the permission for each row."""
        return {}

    def deletion_refusal(self, request: HttpRequest, row: Any) -> str:
        """Return why a row cannot be deleted; "" if it can."""
        raise NotImplementedError

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return what is deleted with a row, and with the last value why it cannot be."""
        model_admin: Any = super()
        *deleted, protected = model_admin.get_deleted_objects(objs, request)
        refusals = [self.deletion_refusal(request, row) for row in objs]
        return *deleted, [*protected, *filter(None, refusals)]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *arguments: Any, **options: Any
    ) -> HttpResponse:
        row = options.get("obj")
        context["show_delete"] = row is None or not self.deletion_refusal(request, row)
        model_admin: Any = super()
        page: HttpResponse = model_admin.render_change_form(request, context, *arguments, **options)
        return page

    def render_delete_form(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        refusal = self.deletion_refusal(request, context["object"])
        return pages.django_deletion(request, context, refusal)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete a row; the events of what ends with it, such as tokens, name the requester."""
        model_admin: Any = super()
        with events.recorded_by(pages.author(request)):
            model_admin.delete_model(request, obj)


ROLE = Column("role", _("role"), access.role_label)
NAMESPACES = Column("namespaces", _("namespaces"), lambda user: ", ".join(access.owned_names(user)))


def _source(user: User) -> str:
    account: DirectoryAccount | None = getattr(user, "directory_account", None)
    return account.get_source_display() if account else gettext("this site")


@admin.register(User)
class UserAdmin(_Account, _Users):
    form = UserChangeForm
    add_form = UserAddForm
    add_form_template = None
    change_password_form = unfold_forms.AdminPasswordChangeForm
    filter_horizontal = ()
    list_display = (
        columns.link("username", _("username"), ordering="username"),
        "email",
        ROLE,
        NAMESPACES,
        Column("source", _("source"), _source),
        "is_active",
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
            .prefetch_related("groups", *(own.related for own in access.OWNERSHIPS))
        )

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer the groups, beside roles, that give nothing that the requester has not."""
        if db_field.name == "groups":
            groups = access.other_groups(access.groups_within(request.user))
            kwargs["queryset"] = groups.order_by("name")
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_form(  # type: ignore[override]  # as in Django's own UserAdmin
        self, request: HttpRequest, obj: User | None = None, **kwargs: Any
    ) -> Any:
        """Say what staff may do, and on the page of a directory account that the directory decides on its rights."""
        form = super().get_form(request, obj, **kwargs)
        if "is_staff" in form.base_fields:
            form.base_fields["is_staff"].label = gettext("May sign in")
            form.base_fields["is_staff"].help_text = gettext("A service account may not.")
            form.base_fields["is_staff"].initial = True
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
        is_closed = not (obj.is_active and obj.is_staff)
        if change and is_closed and {"is_active", "is_staff"} & {*form.changed_data}:
            sessions.end(obj)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        context: dict[str, Any] = dict.fromkeys(
            ("show_save_and_continue", "show_save_and_add_another"), False
        )
        context |= {"title": gettext("Invite a user"), **(extra_context or {})}
        return super().add_view(request, form_url, context)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        form.save_access(pages.author(request))

    def response_add(
        self, request: HttpRequest, obj: User, post_url_continue: Any = None
    ) -> HttpResponse:
        """Show the link by which the new user sets a password; a service account has none."""
        return self._link_page(request, obj) if obj.is_staff else super().response_add(request, obj)

    def _link_page(self, request: HttpRequest, user: User) -> HttpResponse:
        """Show a link to set a password. It is in this response only: nothing stores it."""
        key = urlsafe_base64_encode(force_bytes(user.pk))
        path = reverse("set_password", args=[key, default_token_generator.make_token(user)])
        return pages.page(
            request,
            "user_link.html",
            user,
            title=gettext("Link for %(user)s") % {"user": user},
            link=request.build_absolute_uri(path),
            rights=access.rights(User.objects.get(pk=user.pk)),
            validity=display.duration(settings.PASSWORD_RESET_TIMEOUT),
        )

    def link_view(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Make a link by which a user of this site sets a password, for one who has none or has forgotten it."""
        user = self._changeable(request, user_id)
        if request.method == "POST" and user.is_active and not second_factor.is_of_directory(user):
            return self._link_page(request, user)
        names = {"user": user.get_username()}
        return pages.confirmation(
            request,
            user,
            title=gettext("Make a link for %(user)s?") % names,
            effects=[
                gettext(
                    "Whoever opens the link sets the password of %(user)s. Send it to nobody else."
                )
                % names,
                gettext("Accounts of a directory and accounts that are not active have none."),
            ],
            button=gettext("Make link"),
            back=reverse("admin:auth_user_change", args=[user_id]),
        )

    def _changeable(self, request: HttpRequest, user_id: int) -> User:
        """Return a user whom the requester may change; the permission is checked before the row is read."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        user = get_object_or_404(User, pk=user_id)
        if not self.has_change_permission(request, user):
            raise PermissionDenied
        return user

    def deletion_refusal(self, request: HttpRequest, row: User) -> str:
        if row.pk == request.user.pk:
            return gettext("You cannot delete your own account.")
        return _last_superuser() if access.is_last_superuser(row) else ""

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        if request.method == "POST":
            access.lock_superusers()
        return super().get_deleted_objects(objs, request)

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        """Lock what a sign-in, what sends a message, and a form lock before what belongs to it; then delete a user."""
        accounts = DirectoryAccount.objects.filter(user=obj)
        targets = WebhookTarget.objects.filter(user=obj)
        for rows in (accounts, targets, User.objects.filter(pk=obj.pk)):
            list(rows.order_by("pk").select_for_update())
        super().delete_model(request, obj)

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path(
                "<int:user_id>/reset-second-factor/",
                wrap(self.reset_second_factor),
                name="reset_second_factor",
            ),
            path("<int:user_id>/link/", wrap(self.link_view), name="user_link"),
            *super().get_urls(),
        ]

    def reset_second_factor(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Remove the second factor of a user who lost it."""
        user = self._changeable(request, user_id)
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
        return display.link(url, gettext("Reset second factor"))

    @admin.display(description=_("Role"))
    def role(self, user: User) -> str:
        return access.role_label(user)

    @admin.display(description=_("Namespaces"))
    def namespaces(self, user: User) -> str:
        return ", ".join(access.owned_names(user)) or gettext("none")

    @admin.display(description=_("Link to set a password"))
    def link(self, user: User) -> SafeString | str:
        if second_factor.is_of_directory(user):
            return gettext("none")
        url = reverse("admin:user_link", args=[user.pk])
        return display.link(url, gettext("Make link"))

    @admin.display(description=_("Rights"))
    def rights(self, user: User) -> SafeString:
        return access.rights(user)

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """Return the fields of a user; there are none for single permissions, which groups give."""
        given: tuple[str, ...] = ("role",)
        if access.ownership_of(request.user) is not None:
            given = ("role", "namespaces", "add_namespace")
        if obj is None:
            return ((None, {"fields": ("username", "email", "is_staff", *given)}),)
        if not self.has_change_permission(request, obj):
            given = ("role", "namespaces")
        return (
            (None, {"fields": ("username", "password", "link")}),
            (_("Access"), {"fields": (*given, "groups", "is_active", "is_staff")}),
            (_("Personal info"), {"fields": ("first_name", "last_name", "email")}),
            (_("Second factor"), {"fields": ("factor",)}),
            (_("What may this user see?"), {"fields": ("rights",)}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        return (*super().get_readonly_fields(request, obj), "factor", "link", "rights")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Return the permission to change a user; Django checks it before a password change too."""
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_touch(request, obj)


def _may_touch(request: HttpRequest, user: User | None) -> bool:
    """Return False if the user has more rights than the requester."""
    return user is None or access.users_within(request.user).filter(pk=user.pk).exists()


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
            field.queryset = field.queryset.exclude(pk__in=access.unheld(request.user).values("pk"))
        return field

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return super().has_change_permission(request, obj) and self._is_within(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return super().has_delete_permission(request, obj) and self._is_within(request, obj)

    def deletion_refusal(self, request: HttpRequest, row: Group) -> str:
        is_needed = access.is_needed_group(row)
        return gettext("Users get their role by this group, so it stays.") if is_needed else ""

    @staticmethod
    def _is_within(request: HttpRequest, group: Group | None) -> bool:
        return group is None or access.groups_within(request.user).filter(pk=group.pk).exists()


_USERS = related.RelatedRows(lambda _request: User.objects.all(), ("username",))
OFFERED_USERS = related.offer("users", "auth.view_user", _USERS)
