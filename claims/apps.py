from django.apps import AppConfig


class ClaimsConfig(AppConfig):
    name = "claims"
    verbose_name = "VM networks"

    def ready(self) -> None:
        """What pools shall know of VM networks; networks before all that names one."""
        from claims.access import (  # noqa: PLC0415  # noqa: PLC0415
            cluster_owners,
            handlers,
        )
        from claims.core import resources  # noqa: PLC0415 - models exist only now
        from claims.entries import (  # noqa: PLC0415  # noqa: PLC0415
            drift,
            ippool_handler,
        )
        from claims.extension import (  # noqa: PLC0415
            checks,
            demo,
            leak_sources,
            metrics,
        )
        from claims.extension import (
            conditions as extension_conditions,
        )
        from claims.extension import (  # noqa: PLC0415
            history as told,
        )
        from claims.ipamclaims import (  # noqa: PLC0415
            handler,
        )
        from claims.models import history  # noqa: PLC0415
        from claims.networks import (  # noqa: PLC0415
            nad_handler,
            route_advertisement_handler,
            udn_handler,
        )
        from claims.webhooks import hooks  # noqa: PLC0415
        from claims.workloads import (  # noqa: PLC0415
            handlers as workload_handlers,
        )
        from pools.clusters.reconcile import (  # noqa: PLC0415
            registry,
        )
        from pools.platform import (  # noqa: PLC0415
            events,
        )
        from pools.platform.checks import (  # noqa: PLC0415
            registry as proofs,
        )
        from pools.platform.checks import (  # noqa: PLC0415
            triggers,
        )
        from pools.platform.conditions import (  # noqa: PLC0415
            registry as condition_registry,
        )
        from pools.platform.history import (  # noqa: PLC0415
            search,
        )
        from pools.platform.metrics import (  # noqa: PLC0415
            registry as metric_sources,
        )
        from pools.register.demo import (  # noqa: PLC0415
            demo as fleet,
        )
        from pools.register.history import (  # noqa: PLC0415
            holders,
        )
        from pools.register.leaks import (  # noqa: PLC0415
            detection,
        )
        from pools.webhooks import configuration  # noqa: PLC0415

        condition_registry.register(*extension_conditions.ALL)
        events.add_logs(*history.ALL)
        search.SEARCHERS.extend(told.SEARCHERS)
        search.READERS.append(told.read)
        search.PERMISSIONS.append("claims.view_entry")
        holders.NAMED.append(told.named_at)
        metric_sources.SOURCES.append(metrics.values)
        fleet.PARTS.append(fleet.Part(demo.steps, demo.forget))
        registry.register(udn_handler.UserDefinedNetworks(resources.CLUSTER_UDN))
        registry.register(udn_handler.UserDefinedNetworks(resources.UDN))
        registry.register(route_advertisement_handler.RouteAdvertisements())
        registry.register(nad_handler.NetworkAttachmentDefinitions())
        registry.register(ippool_handler.IPPools())
        registry.register(workload_handlers.VirtualMachines())
        registry.register(workload_handlers.VirtualMachineInstances())
        registry.register(workload_handlers.Pods())
        if cluster_owners.roles():
            registry.register(handlers.RoleBindings())
            registry.register(handlers.Groups())
        registry.register(handler.IPAMClaims())  # last: it grants what all others say is free
        drift.register()
        detection.register(leak_sources.VMS)
        detection.register(leak_sources.PODS)
        proofs.add(*checks.CHECKS)
        triggers.PACKAGES.append("claims.sql")
        for hook in hooks.ALL:
            configuration.register(hook)
