from django.apps import AppConfig


class PoolsConfig(AppConfig):
    name = "pools"
    verbose_name = "Address space"

    def ready(self) -> None:
        """The kinds that are reconciled; pools before nodes, whose blocks need them."""
        from pools.handlers import (  # noqa: PLC0415 - models exist only now
            ciliumnodes,
            ciliumpodippools,
            registry,
        )
        from pools.reconcile import observing  # noqa: PLC0415
        from pools.services import demo, demo_samples, leaks  # noqa: PLC0415
        from pools.services.notices import conditions, of_pools, of_register  # noqa: PLC0415

        conditions.register(*of_pools.ALL, *of_register.ALL)
        demo.PARTS.append(demo.Part(demo_samples.steps, demo_samples.forget))
        registry.register(ciliumpodippools.CiliumPodIPPools())
        registry.register(ciliumnodes.CiliumNodes())
        leaks.register(leaks.NODES)
        observing.OBSERVERS.append(leaks.observed)
