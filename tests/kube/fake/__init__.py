"""A fake Kubernetes API server: real HTTP over TLS, its state in memory.

    with FakeCluster() as cluster:
        cluster.crds("cilium.io_ciliumpodippools.v2")
        cluster.put({...})
        cluster.faults.add(verb="list", status=503)
        ... cluster.url, cluster.ca, cluster.token, cluster.kubeconfig() ...
        assert not cluster.log.writes

`python -m tests.kube.fake` starts some in a process of their own.

It does not do: protobuf, CEL rules, conversion webhooks, garbage collection, strategic merge (taken as a merge
patch), collections deleted at once, quotas, tables.
"""

from tests.kube.fake.cluster import CRDS, FakeCluster
from tests.kube.fake.refusals import Refused

__all__ = ["CRDS", "FakeCluster", "Refused"]
