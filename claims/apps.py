from django.apps import AppConfig


class ClaimsConfig(AppConfig):
    name = "claims"
    verbose_name = "VM networks"

    def ready(self) -> None:
        """What pools shall know of VM networks."""
        from claims.models import history  # noqa: PLC0415 - models exist only now
        from pools import events  # noqa: PLC0415

        events.add_logs(*history.ALL)
