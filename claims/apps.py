from django.apps import AppConfig


class ClaimsConfig(AppConfig):
    name = "claims"
    verbose_name = "VM networks"

    def ready(self) -> None:
        """What pools shall know of VM networks; networks before all that names one."""
        from claims.core import resources  # noqa: PLC0415 - models exist only now
        from claims.handlers import (  # noqa: PLC0415
            ipamclaims,
            ippools,
            nads,
            networks,
            owners,
            route_advertisements,
            workloads,
        )
        from claims.models import history  # noqa: PLC0415
        from claims.services import (  # noqa: PLC0415
            checking,
            cluster_owners,
            demo,
            ippool_settling,
            leak_sources,
            metrics,
            notices,
        )
        from claims.services import history as told  # noqa: PLC0415
        from claims.webhooks import hooks  # noqa: PLC0415
        from pools import events  # noqa: PLC0415
        from pools.handlers import registry  # noqa: PLC0415
        from pools.services import demo as fleet  # noqa: PLC0415
        from pools.services import history_holders, history_search, leaks  # noqa: PLC0415
        from pools.services.checking import registry as proofs  # noqa: PLC0415
        from pools.services.checking import triggers  # noqa: PLC0415
        from pools.services.metrics import registry as metric_sources  # noqa: PLC0415
        from pools.services.notices import conditions  # noqa: PLC0415
        from pools.webhooks import configuration  # noqa: PLC0415

        conditions.register(*notices.ALL)
        events.add_logs(*history.ALL)
        history_search.SEARCHERS.extend(told.SEARCHERS)
        history_search.READERS.append(told.read)
        history_search.PERMISSIONS.append("claims.view_entry")
        history_holders.NAMED.append(told.named_at)
        metric_sources.SOURCES.append(metrics.values)
        fleet.PARTS.append(fleet.Part(demo.steps, demo.forget))
        registry.register(networks.UserDefinedNetworks(resources.CLUSTER_UDN))
        registry.register(networks.UserDefinedNetworks(resources.UDN))
        registry.register(route_advertisements.RouteAdvertisements())
        registry.register(nads.NetworkAttachmentDefinitions())
        registry.register(ippools.IPPools())
        registry.register(workloads.VirtualMachines())
        registry.register(workloads.VirtualMachineInstances())
        registry.register(workloads.Pods())
        if cluster_owners.roles():
            registry.register(owners.RoleBindings())
            registry.register(owners.Groups())
        registry.register(ipamclaims.IPAMClaims())  # last: it grants what all others say is free
        ippool_settling.register()
        leaks.register(leak_sources.VMS)
        leaks.register(leak_sources.PODS)
        proofs.add(*checking.CHECKS)
        triggers.PACKAGES.append("claims.sql")
        for hook in hooks.ALL:
            configuration.register(hook)
