from django.apps import AppConfig


class PoolsConfig(AppConfig):
    name = "pools"
    verbose_name = "Address space"

    def ready(self) -> None:
        """The kinds that are reconciled; pools before nodes, whose blocks need them."""
        from pools.cilium import (  # noqa: PLC0415 - models exist only now
            ciliumnodes,
            ciliumpodippools,
        )
        from pools.clusters.reconcile import (  # noqa: PLC0415 - models exist only now  # noqa: PLC0415
            observers,
            registry,
        )
        from pools.platform.conditions import (  # noqa: PLC0415
            registry as condition_registry,
        )
        from pools.register.conditions import (  # noqa: PLC0415
            pools,
            register,
        )
        from pools.register.demo import (  # noqa: PLC0415
            demo,
            samples,
        )
        from pools.register.leaks import (  # noqa: PLC0415
            detection,
        )

        condition_registry.register(*pools.ALL, *register.ALL)
        demo.PARTS.append(demo.Part(samples.steps, samples.forget))
        registry.register(ciliumpodippools.CiliumPodIPPools())
        registry.register(ciliumnodes.CiliumNodes())
        detection.register(detection.NODES)
        observers.OBSERVERS.append(detection.observed)
