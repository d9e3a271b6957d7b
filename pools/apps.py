from django.apps import AppConfig


class PoolsConfig(AppConfig):
    name = "pools"
    verbose_name = "Address space"

    def ready(self) -> None:
        from pools import extension

        extension.install(extension.ADDRESS_SPACE)
