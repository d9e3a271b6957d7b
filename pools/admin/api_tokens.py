"""API tokens. The text of a token is shown once, when it is created."""

from datetime import timedelta
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext
from knox.models import AuthToken

from pools.admin import access, users
from pools.core import holders
from pools.models import TokenLevel, TokenScope
from pools.platform import events
from pools.platform.admin import columns, display, forms as fields, lists, pages, related
from pools.platform.admin.columns import Column
from pools.platform.admin.lists import Page
from pools.platform.rest import token_scopes

admin.site.unregister(AuthToken)


class TokenForm(forms.Form):
    user = related.RelatedField(
        users.OFFERED_USERS, User.objects.order_by("username"), label=_("User")
    )
    description = fields.ParsedField(
        partial(holders.parse_reason, max_length=200),
        label=_("Description"),
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
        token_scopes.parse_subject,
        label=_("Limited to"),
        required=False,
        help_text=_("One cluster (prod) or one pool (prod/green-pool). Empty: no limit."),
    )
    days = forms.IntegerField(
        label=_("Validity in days"),
        initial=365,
        min_value=1,
        max_value=token_scopes.LONGEST_VALIDITY,
        widget=fields.text(inputmode="numeric"),
    )

    def __init__(self, data: Any, *, user: Any) -> None:
        super().__init__(data, initial={"user": user.pk})
        owners = access.users_within(user).order_by("username")
        if not user.has_perm("knox.add_authtoken"):
            # Every user may create tokens for itself: a token has no more permissions than its owner.
            owners = owners.filter(pk=user.pk)
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
        subject = values.get("limited_to") or token_scopes.ANYTHING
        call = _first_call(values["user"], subject)
        # The token is in this response only: the register stores its digest.
        token = token_scopes.create_token(
            values["user"],
            author=pages.author(request),
            validity=timedelta(days=values["days"]),
            level=values["level"],
            subject=subject,
            description=values["description"] or "",
        )
    title = gettext("Create API token")
    return pages.page(
        request, "token.html", AuthToken, title=title, form=form, token=token, call=call
    )


def _first_call(user: User, subject: token_scopes.Subject) -> str:
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
    return str(token_scopes.Subject(related.get("cluster"), related.get("pool"))) or gettext(
        "removed"
    )


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

    def delete_model(self, request: HttpRequest, obj: AuthToken) -> None:
        with events.recorded_by(pages.author(request)):
            super().delete_model(request, obj)

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
        with events.recorded_by(pages.author(request)):
            for token in mine:
                token.delete()
        self.message_user(
            request,
            ngettext("%(number)s token was revoked.", "%(number)s tokens were revoked.", len(mine))
            % {"number": len(mine)},
        )
        return None
