"""Users, groups and API tokens. The text of a token is shown once, when it is created."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth import admin as auth_admin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from knox.models import AuthToken
from unfold import admin as unfold
from unfold import forms as unfold_forms
from unfold.contrib.filters.admin import RelatedDropdownFilter

from pools.models import DirectoryAccount, TokenLevel, TokenScope
from pools.platform import second_factor, sessions, tokens
from pools.platform.admin import columns, display, lists, pages, related
from pools.platform.admin import forms as fields
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page

if TYPE_CHECKING:
    _Users = auth_admin.UserAdmin[User]
    _Groups = auth_admin.GroupAdmin
else:

    class _Users(auth_admin.UserAdmin, unfold.ModelAdmin):
        pass

    class _Groups(auth_admin.GroupAdmin, unfold.ModelAdmin):
        pass


for model in (User, Group, AuthToken):
    admin.site.unregister(model)


class _Account:
    """Check the permission before the row is read, and keep names of related rows off the page of a deletion.

    Django reads the row first, so its answer tells an unauthorized user whether the row exists.
    """

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        model_admin: Any = super()
        if not model_admin.has_view_or_change_permission(request):
            raise PermissionDenied
        return model_admin.history_view(request, object_id, extra_context)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        model_admin: Any = super()
        row = model_admin.get_object(request, unquote(object_id))
        title = {"title": gettext("Delete %(name)s?") % {"name": row}} if row else {}
        return model_admin.delete_view(request, object_id, title | (extra_context or {}))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[Any, Any, Any, Any]:
        """Name the rows, and count what goes with them: the name of a session is the cookie of its browser."""
        model_admin: Any = super()
        _names, counts, lacking, protected = model_admin.get_deleted_objects(objs, request)
        return [str(row) for row in objs], counts, lacking, protected


GROUPS = Column("groups", _("groups"), lambda user: ", ".join(map(str, user.groups.all())))


def _source(user: User) -> str:
    account: DirectoryAccount | None = getattr(user, "directory_account", None)
    return account.get_source_display() if account else gettext("this site")


@admin.register(User)
class UserAdmin(_Account, _Users):
    form = unfold_forms.UserChangeForm
    add_form = unfold_forms.UserCreationForm
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
        if not hasattr(user, "second_factor"):
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

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Remove bulk deletion: it does not check the permission for each user."""
        return {}


def _may_touch(request: HttpRequest, user: User | None) -> bool:
    """Return False if the user is a superuser and the requester is not."""
    return user is None or not user.is_superuser or bool(request.user.is_superuser)


@admin.register(Group)
class GroupAdmin(_Account, _Groups):
    list_display = (columns.link("name", _("name"), ordering="name"),)
    list_display_links = None


_USERS = related.RelatedRows(lambda _request: User.objects.all(), ("username",))
OFFERED_USERS = related.offer("users", "auth.view_user", _USERS)


class TokenForm(forms.Form):
    user = related.RelatedField(OFFERED_USERS, User.objects.order_by("username"), label=_("User"))
    description = forms.CharField(
        label=_("Description"),
        max_length=200,
        required=False,
        widget=fields.text(),
        help_text=_("What uses the token."),
    )
    level = forms.TypedChoiceField(
        label=_("Level"),
        choices=TokenLevel.choices,
        initial=TokenLevel.ALLOCATE,
        required=False,
        empty_value=TokenLevel.ADMINISTER,
        widget=fields.select(),
        help_text=_("A token never has more rights than its owner."),
    )
    limited_to = fields.ParsedField(
        tokens.parse_subject,
        label=_("Limited to"),
        required=False,
        help_text=_("One cluster (prod) or one pool (prod/green-pool). Empty: no limit."),
    )
    days = forms.IntegerField(
        label=_("Validity in days"),
        initial=365,
        min_value=1,
        max_value=tokens.LONGEST_VALIDITY,
        widget=fields.text(inputmode="numeric"),
    )

    def __init__(self, data: Any, *, user: Any) -> None:
        super().__init__(data, initial={"user": user.pk})
        owners = User.objects.order_by("username")
        if not user.has_perm("knox.add_authtoken"):
            # Every user may create tokens for itself: a token has no more permissions than its owner.
            owners = owners.filter(pk=user.pk)
        elif not user.is_superuser:
            owners = owners.filter(Q(is_superuser=False) | Q(pk=user.pk))
        field: Any = self.fields["user"]
        field.queryset = owners
        if not user.has_perms(["pools.view_cluster", "pools.view_pool"]):
            # The answer would tell whether there is such a cluster.
            del self.fields["limited_to"]


def _create(request: HttpRequest) -> HttpResponse:
    form = TokenForm(request.POST or None, user=request.user)
    token, call = "", ""
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        subject = values.get("limited_to") or tokens.ANYTHING
        call = _first_call(values["user"], subject)
        # The token is in this response only: the register stores its digest.
        token = tokens.create(
            values["user"],
            validity=timedelta(days=values["days"]),
            level=values["level"],
            subject=subject,
            description=values["description"],
        )
    title = gettext("Create API token")
    return pages.page(
        request, "token.html", AuthToken, title=title, form=form, token=token, call=call
    )


def _first_call(user: User, subject: tokens.Subject) -> str:
    """Return a list or object that a new token of the user may read."""
    if subject.pool is not None:
        return f"pools/{subject.pool.pk}/"
    return "pools/" if user.has_perm("pools.view_pool") else "networks/"


def _last_use(token: AuthToken) -> SafeString | str:
    use = getattr(token, "use", None)
    return display.timestamp(use.used_at) if use else gettext("never")


def _scope(token: AuthToken) -> TokenScope:
    return getattr(token, "scope", None) or TokenScope()


def _subject(scope: TokenScope) -> str:
    if scope.cluster_id is None and scope.pool_id is None:
        return ""
    # Without a constraint, the row may be gone.
    related: Any = scope._state.fields_cache
    return str(tokens.Subject(related.get("cluster"), related.get("pool"))) or gettext("removed")


def _owns(request: HttpRequest, token: AuthToken | None) -> bool:
    """Return True for a token of the user, and for the list, which has such tokens."""
    return token is None or token.user_id == request.user.pk


@admin.register(AuthToken)
class TokenAdmin(lists.ListAdmin[AuthToken]):
    list_display = (
        "user",
        Column("description", _("description"), lambda token: _scope(token).description),
        Column("level", _("level"), lambda token: _scope(token).get_level_display()),
        Column("limited_to", _("limited to"), lambda token: _subject(_scope(token))),
        columns.timestamp("created", _("created"), ordering="created"),
        Column("last_used", _("last used"), _last_use, ordering="use__used_at"),
        columns.timestamp("expiry", _("expires"), ordering="expiry"),
    )
    sortable_by = ("user",)
    fields = ("user", "created", "expiry")
    readonly_fields = fields
    ordering = ("-created",)
    list_before_template = "cadastre/tokens_intro.html"
    row_name, row_names = _("token"), _("tokens")
    actions = ("revoke",)
    list_pages = (Page("create", _create),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuthToken]:
        rows = super().get_queryset(request)
        rows = rows.select_related("user", "use", "scope__cluster", "scope__pool__cluster")
        if request.user.has_perm("knox.view_authtoken"):
            return rows
        return rows.filter(user_id=request.user.pk or 0)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return True

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _owns(request, obj) or request.user.has_perm("knox.view_authtoken")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _owns(request, obj) or request.user.has_perm("knox.delete_authtoken")

    @admin.action(description=_("Revoke"))
    def revoke(self, request: HttpRequest, rows: QuerySet[AuthToken]) -> HttpResponse | None:
        mine = [token for token in rows if self.has_delete_permission(request, token)]
        if mine and not pages.is_confirmed(request):
            text = ngettext("Revoke %(number)s token?", "Revoke %(number)s tokens?", len(mine))
            names = [f"{token.user}: {_scope(token).description or '…'}" for token in mine]
            return pages.confirmation(
                request,
                AuthToken,
                title=text % {"number": len(mine)},
                effects=[*names, gettext("What uses them is refused at once.")],
                button=gettext("Revoke"),
                back=request.get_full_path(),
            )
        for token in mine:
            token.delete()
        self.message_user(
            request,
            ngettext("%(number)s token was revoked.", "%(number)s tokens were revoked.", len(mine))
            % {"number": len(mine)},
        )
        return None
