from django.apps import AppConfig


class ClaimsConfig(AppConfig):
    name = "claims"
    verbose_name = "VM networks"

    def ready(self) -> None:
        from claims.extension import VM_NETWORKS
        from pools import extension

        extension.install(VM_NETWORKS)
