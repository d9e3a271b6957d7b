"""The page of users about themselves: name, time zone, password, second factor, tokens, and what they may see."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from knox.models import AuthToken
from unfold.widgets import UnfoldAdminTextInputWidget

from pools.admin import access
from pools.models import Preferences, time_zones
from pools.platform import second_factor
from pools.platform.admin import forms as fields
from pools.platform.admin import pages

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


def view(request: HttpRequest) -> HttpResponse:
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
        rights=access.rights(row),
    )
