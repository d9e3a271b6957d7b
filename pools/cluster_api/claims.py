"""The handler of IPAddressClaims: answers claims of our pools (managed resource `cluster-api`).

Clusters, which may be paused, and IPAddresses have handlers of their own, because they are read for claims only. Pages
show claims with what they name, what they have, and why not.

The contract of Cluster API v1beta1 and v1beta2 for IPAM providers. Claims of other providers are no objects
of this handler. A paused claim, pool or Cluster stops everything, the release too (rule
`paused-means-nothing`); a Cluster that is not known is taken for a paused one, except for a deletion. A
claim that cannot be served has a condition, and each call tries it again.
"""

import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db import DatabaseError
from django.db.models import QuerySet

from pools.cluster_api import allocation, claim_writes, observed
from pools.cluster_api.claim_writes import Target
from pools.cluster_api.observed import Bindings, Observation, ObservedClaim, PoolBinding
from pools.clusters.reconcile import handler, ingest
from pools.core import errors, redaction
from pools.core.cluster_api import conditions, contract
from pools.core.cluster_api.conditions import Outcome, Reason
from pools.core.cluster_api.contract import HOLDER_KIND, AddressClaim, ObjectName, PoolKey
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import Block, BlockState, Cluster, ManagedResource, ObservedObject
from pools.platform import database, events

_INTERNAL_ERROR = "The allocation failed with an internal error; see the log of the worker."
_GATEWAY_ERROR = "Its gateway could not be reserved; see the log of the worker."

log = logging.getLogger(__name__)


class IPAddressClaims(handler.Handler):
    """The reconcile handler of IPAddressClaims; all of its state is in the database."""

    kind = contract.CLAIM_KIND
    resources: Sequence[Resource] = contract.CLAIMS
    prompt = True
    follows = (contract.CLUSTER_KIND, *contract.POOL_KINDS, contract.ADDRESS_KIND)

    def is_relevant(self, manifest: Manifest) -> bool:
        return contract.pool_key(manifest) is not None

    def parse(self, manifest: Manifest) -> AddressClaim:
        return contract.parse_claim(manifest)

    def ingest(
        self,
        context: handler.SyncContext,  # noqa: ARG002
        parsed_objects: Sequence[handler.ParsedObject],
    ) -> None:
        """Mark the claims that are not answered, which each watch event looks at again."""
        for row, claim in parsed_objects:
            row.pending = (
                claim.is_deleting
                or not claim.has_finalizer
                or conditions.current_reason(row.manifest) != (Reason.READY.value, "")
            )

    def desired(self, context: handler.SyncContext) -> Iterator[handler.Write]:
        if not context.connection.manages(ManagedResource.CLUSTER_API):
            return
        claims = observed.served_resource(context, contract.CLAIMS)
        addresses = observed.served_resource(context, contract.ADDRESSES)
        if claims is None or addresses is None:
            return  # nothing is concluded from a kind that could not be read
        observation = observed.read(context)
        _release_vanished(context, observation)
        if not observation.claims and not observation.addresses:
            return
        schema = context.client.schema(claims)
        target = Target(
            context,
            claims,
            addresses,
            conditions.status_form(claims.version, schema),
            database.now(),
        )
        yield from _Answers(target, observation).writes()

    def findings(self, context: handler.SyncContext) -> Iterable[handler.ReconcileFinding]:
        if context.connection.manages(ManagedResource.CLUSTER_API):
            return
        number = claims_of_cluster(context.cluster).filter(problem_code="").count()
        if number:
            yield handler.ReconcileFinding(
                "cluster_api_off",
                self.kind,
                f"{number} IPAddressClaim{'s name' if number > 1 else ' names'} a pool of the register,"
                " but the managed resource cluster-api is off: no claim is answered.",
            )


def _release_vanished(context: handler.SyncContext, observation: Observation) -> None:
    if observation.unknown & {contract.CLAIM_KIND, contract.ADDRESS_KIND}:
        return
    allocation.release_vanished(context, observation.claim_uids, observation.address_texts)


@dataclass
class _Answers:
    """The answers to the claims of one sync."""

    target: Target
    observation: Observation

    def __post_init__(self) -> None:
        self._context = self.target.context
        claims = [observed_claim.claim for observed_claim in self.observation.claims]
        pools = self.observation.pools
        if self._context.from_watch:
            pools = {key: pools[key] for key in {claim.pool for claim in claims} if key in pools}
        self._bindings: Bindings = observed.bind(self._context.cluster, pools)
        self._held = allocation.held_addresses(
            self._context.cluster.pk, [claim.name for claim in claims]
        )
        self._reserve_gateways()

    def writes(self) -> Iterator[handler.Write]:
        for observed_claim in self.observation.claims:
            if not self.observation.is_paused(observed_claim.claim):
                with self._isolate(observed_claim.claim.name):
                    yield from list(self._answer(observed_claim))
        yield from self._abandoned()

    def _isolate(self, name: ObjectName) -> contextlib.AbstractContextManager[None]:
        return ingest.isolate_object(self._context, contract.CLAIM_KIND, str(name))

    def _reserve_gateways(self) -> None:
        """Reserve the gateways of pools; a gateway that cannot be reserved makes its pool unusable."""
        bindings = dict(self._bindings)
        for key, binding in self._bindings.items():
            if isinstance(binding, PoolBinding):
                try:
                    with self._context.transaction():
                        observed.reserve_gateway(binding, author=self._context.author)
                except ingest.STOPS:
                    raise
                except errors.IpamError as error:
                    bindings[key] = error
                except (DatabaseError, *handler.BUGS):
                    log.exception("the gateway of %s could not be reserved", key)
                    bindings[key] = errors.IpamError(_GATEWAY_ERROR)
        self._bindings = bindings

    def _answer(self, observed_claim: ObservedClaim) -> Iterator[handler.Write]:
        claim = observed_claim.claim
        address = self.observation.addresses.get(claim.name)
        if claim.is_deleting:
            yield from claim_writes.releasing_writes(self.target, observed_claim, address)
            return
        binding = self._bindings.get(claim.pool)
        try:
            text = self._hold(claim, binding, address)
        except ingest.STOPS:
            raise
        except (errors.IpamError, DatabaseError, *handler.BUGS) as error:
            if not self._is_answered(claim, address):
                yield from self._refuse(observed_claim, error)
            return
        assert isinstance(binding, PoolBinding)  # noqa: S101  # else _hold has raised
        yield from claim_writes.serving_writes(self.target, observed_claim, binding, text, address)

    def _hold(
        self,
        claim: AddressClaim,
        binding: PoolBinding | errors.IpamError | None,
        address: Manifest | None,
    ) -> str:
        if binding is None:
            raise observed.PoolNotUsable(f"There is no {claim.pool}.")
        if isinstance(binding, errors.IpamError):
            raise observed.PoolNotUsable(f"{claim.pool}: {binding.message}")
        existing = ""
        if address is not None and contract.belongs_to(address, claim):
            existing = contract.parse_address(address)
        text = self._held.get(claim.uid, "")
        if text and existing in {"", text}:
            return text
        if binding.pool_object.is_deleting and not existing:
            raise observed.PoolNotUsable(f"{claim.pool} is being deleted.")
        return allocation.hold_address(self._context, claim, binding, existing)

    def _is_answered(self, claim: AddressClaim, address: Manifest | None) -> bool:
        """Return True if the claim has its address already; a problem of the pool does not take it."""
        return address is not None and self._held.get(claim.uid) == contract.address_of(address)

    def _refuse(self, observed_claim: ObservedClaim, error: Exception) -> Iterator[handler.Write]:
        claim = observed_claim.claim
        outcome = _outcome(claim, error)
        if conditions.current_reason(observed_claim.manifest) != (
            outcome.reason.value,
            outcome.message,
        ):
            with self._isolate(claim.name):
                self._record(claim, outcome, error)
        yield from claim_writes.status_writes(self.target, observed_claim, outcome)

    def _record(self, claim: AddressClaim, outcome: Outcome, error: Exception) -> None:
        """Record a refusal of the allocator once, in the history of the pool."""
        binding = self._bindings.get(claim.pool)
        if outcome.reason is Reason.POOL_NOT_READY or not isinstance(binding, PoolBinding):
            return
        with self._context.transaction():
            events.record_allocation_failure(
                binding.pool,
                holder=(contract.HOLDER_KIND, str(claim.name)),
                org="",
                env="",
                code=error.code if isinstance(error, errors.IpamError) else "internal_error",
                message=f"IPAddressClaim {claim.name}: {outcome.message}",
                author=self._context.author,
            )

    def _abandoned(self) -> Iterator[handler.Write]:
        """Yield writes for addresses whose claim is gone: somebody deletes them, or they are leaks."""
        if contract.CLAIM_KIND in self.observation.unknown:
            return
        leaked = allocation.leaked_addresses(self._context.cluster.pk)
        names = {observed_claim.claim.name for observed_claim in self.observation.claims}
        for name, address in self.observation.addresses.items():
            if name in names:
                continue
            is_leaked = (str(name), contract.address_of(address)) in leaked
            if contract.is_deleting(address) or (is_leaked and not self._is_paused(address)):
                yield from claim_writes.abandoned_address_writes(
                    self.target, address, leaked=is_leaked
                )

    def _is_paused(self, address: Manifest) -> bool:
        """Return True if the pool or the Cluster of an IPAddress without a claim is paused."""
        fields = contract.metadata(address)
        labels = contract.section(fields, "labels")
        pool = contract.pool_key(address)
        return pool is None or self.observation.is_paused(
            AddressClaim(
                name=contract.object_name(address),
                uid="",
                pool=pool,
                cluster=str(labels.get(contract.CLUSTER_NAME) or ""),
                is_paused=contract.has_paused_annotation(address),
                is_deleting=True,
                has_finalizer=False,
                labels=labels,
            )
        )


def _outcome(claim: AddressClaim, error: Exception) -> Outcome:
    if isinstance(error, errors.PoolExhausted):
        return Outcome(Reason.POOL_EXHAUSTED, error.message)
    if isinstance(error, observed.PoolNotUsable | errors.Recovering):
        return Outcome(Reason.POOL_NOT_READY, error.message)
    if isinstance(error, errors.IpamError):
        return Outcome(Reason.ALLOCATION_FAILED, error.message)
    log.error("no address could be allocated for the claim %s", claim.name, exc_info=error)
    return Outcome(Reason.ALLOCATION_FAILED, _INTERNAL_ERROR)


_METADATA = (
    "namespace",
    "name",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
)


class Clusters(handler.Handler):
    """Clusters of Cluster API; only what may pause them is kept."""

    kind = contract.CLUSTER_KIND
    resources: Sequence[Resource] = contract.CLUSTERS

    def project(self, manifest: Manifest) -> Manifest:
        metadata = contract.metadata(manifest)
        kept = {name: metadata[name] for name in _METADATA if name in metadata}
        annotations = contract.section(metadata, "annotations")
        if contract.PAUSED in annotations:
            kept["annotations"] = {contract.PAUSED: annotations[contract.PAUSED]}
        paused = contract.section(manifest, "spec").get("paused") is True
        return {
            "apiVersion": manifest.get("apiVersion"),
            "kind": manifest.get("kind"),
            "metadata": kept,
            "spec": {"paused": paused},
        }

    def parse(self, manifest: Manifest) -> ObjectName:
        return contract.object_name(manifest)


class IPAddresses(handler.Handler):
    """IPAddresses of our pools; the handler of claims writes them."""

    kind = contract.ADDRESS_KIND
    resources: Sequence[Resource] = contract.ADDRESSES

    def is_relevant(self, manifest: Manifest) -> bool:
        return contract.pool_key(manifest) is not None

    def parse(self, manifest: Manifest) -> ObjectName:
        return contract.object_name(manifest)


@dataclass(frozen=True)
class ListedClaim:
    """A claim as last observed, with the block that it holds; `reason` is "" before the first answer."""

    row: ObservedObject
    pool: PoolKey | None
    block: Block | None
    reason: str
    message: str

    @property
    def is_answered(self) -> bool:
        return self.reason == Reason.READY.value


def claims_of_cluster(cluster: Cluster) -> QuerySet[ObservedObject]:
    """Return the claims of a cluster, by namespace and name."""
    rows = ObservedObject.objects.filter(cluster=cluster, kind=contract.CLAIM_KIND, missed_at=None)
    return rows.order_by("namespace", "name")


def describe(rows: Iterable[ObservedObject]) -> list[ListedClaim]:
    """Return the claims with their pools, blocks and conditions."""
    chosen = list(rows)
    blocks = Block.objects.filter(
        holder_id__in={f"{row.namespace}/{row.name}" for row in chosen},
        holder_kind=HOLDER_KIND,
        state=BlockState.HELD,
    )
    by_uid = {block.holder_uid: block for block in blocks.select_related("pool__cluster")}
    claims = []
    for row in chosen:
        reason, message = conditions.current_reason(row.manifest) or ("", "")
        key = contract.pool_key(row.manifest)
        block = by_uid.get(row.uid)
        claims.append(ListedClaim(row, key, block, reason, redaction.redact(message)))
    return claims
