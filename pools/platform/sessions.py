"""Sessions of the browsers: Django's, in a table that names their users (SESSION_ENGINE)."""

from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends import db

from pools.models import BrowserSession


class SessionStore(db.SessionStore):
    @classmethod
    def get_model_class(cls) -> type[BrowserSession]:
        return BrowserSession

    def create_model_instance(self, data: dict[str, Any]) -> BrowserSession:
        session: BrowserSession = super().create_model_instance(data)  # type: ignore[assignment]
        session.user_id = data.get(SESSION_KEY)
        return session


def end(user: User) -> None:
    """Delete the sessions of a user: an inactive user has none, but would have them again when active."""
    BrowserSession.objects.filter(user=user).delete()


def tidy() -> None:
    """Delete the sessions that have expired."""
    SessionStore.clear_expired()
