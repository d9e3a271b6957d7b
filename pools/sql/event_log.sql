-- All event tables as one log. Each branch keeps its primary key as `id` and has the same types of
-- columns (text, not varchar), and those of large tables join no other table, so that the newest events
-- of all tables are found by merging their indexes.
CREATE OR REPLACE VIEW pools_event_log AS
  SELECT e.pgh_id AS id, e.pgh_created_at AS at,
    CASE WHEN e.pgh_label = 'released' AND e.pgh_context ? 'reason'
           -- Events that are older than `forced` carry a reason only where they were.
           AND COALESCE((e.pgh_context ->> 'forced')::boolean, TRUE) THEN 'reclaimed'
         WHEN e.pgh_label = 'removed' THEN CASE WHEN e.state = 'held' THEN 'reclaimed'
                                               ELSE 'cooldown_ended' END
         WHEN e.pgh_label <> 'allocated' THEN e.pgh_label
         WHEN e.category = 'node' THEN 'node.enrolled'
         WHEN e.category = 'ipv4' AND e.holder_kind = 'env' THEN 'env.ipv4_addon_enabled'
         WHEN e.holder_kind = 'instance' THEN 'instance.allocated'
         ELSE 'block.allocated' END AS type,
    'blockevent'::text AS "table", e.pgh_obj_id AS object_id,
    (SELECT cluster_id FROM pools_addressspace WHERE id = e.space_id) AS cluster_id, e.pool_id,
    e.cidr::text AS cidr, e.holder_kind::text, e.holder_id::text, e.org::text, e.env::text,
    COALESCE(e.pgh_context ->> 'actor', '') AS actor,
    COALESCE(e.pgh_context ->> 'request_id', '') AS request_id,
    COALESCE(e.pgh_context ->> 'reason', '') AS reason, ''::text AS message
  FROM pools_blockevent e
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at,
    CASE WHEN e.category = 'node' THEN 'node.enrollment_failed'
         WHEN e.category = 'ipv4' AND e.holder_kind = 'env' THEN 'env.ipv4_addon_failed'
         WHEN e.holder_kind = 'instance' THEN 'instance.allocation_failed'
         ELSE 'block.allocation_failed' END,
    'failureevent', e.pgh_obj_id,
    (SELECT cluster_id FROM pools_pool WHERE id = e.pgh_obj_id), e.pgh_obj_id, '', e.holder_kind::text,
    e.holder_id::text, e.org::text, e.env::text, COALESCE(e.pgh_context ->> 'actor', ''),
    COALESCE(e.pgh_context ->> 'request_id', ''), e.code::text, e.message::text
  FROM pools_failureevent e
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'pool.' || e.pgh_label, 'poolevent', e.pgh_obj_id,
    e.cluster_id, e.pgh_obj_id, '', '', '', '', '', COALESCE(e.pgh_context ->> 'actor', ''),
    COALESCE(e.pgh_context ->> 'request_id', ''), COALESCE(e.pgh_context ->> 'reason', ''), e.name::text
  FROM pools_poolevent e
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at,
    CASE e.pgh_label WHEN 'created' THEN 'pool.cidr_added' WHEN 'deleted' THEN 'pool.cidr_removed'
         ELSE 'pool.cidr_changed' END,
    'poolcidrevent', e.pgh_obj_id, p.cluster_id, e.pool_id, e.cidr::text, '', '', '', '',
    COALESCE(e.pgh_context ->> 'actor', ''), COALESCE(e.pgh_context ->> 'request_id', ''),
    COALESCE(e.pgh_context ->> 'reason', ''), ''
  FROM pools_poolcidrevent e LEFT JOIN pools_pool p ON p.id = e.pool_id
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at,
    CASE e.pgh_label WHEN 'created' THEN 'pool.range_reserved'
         WHEN 'deleted' THEN 'pool.range_removed' ELSE 'pool.range_changed' END,
    'reservedrangeevent', e.pgh_obj_id, p.cluster_id, e.pool_id,
    host(e.first) || '-' || host(e.last), '', '', '', '',
    COALESCE(e.pgh_context ->> 'actor', ''), COALESCE(e.pgh_context ->> 'request_id', ''),
    COALESCE(e.pgh_context ->> 'reason', ''), e.reason::text
  FROM pools_reservedrangeevent e LEFT JOIN pools_pool p ON p.id = e.pool_id
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at,
    'import.' || CASE e.pgh_label WHEN 'created' THEN 'created' ELSE e.status END,
    'importevent', e.pgh_obj_id, e.cluster_id, NULL::bigint, '', '', '', '', '',
    COALESCE(e.pgh_context ->> 'actor', ''), COALESCE(e.pgh_context ->> 'request_id', ''),
    COALESCE(e.pgh_context ->> 'reason', ''),
    concat_ws(', ', NULLIF(e.file_name, ''),
        (SELECT string_agg(c.value || ' ' || c.key, ', ' ORDER BY c.key)
         FROM jsonb_each_text(e.counts) c WHERE c.value <> '0'))
  FROM pools_importevent e
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'netbox_source.' || e.pgh_label, 'netboxsourceevent', e.pgh_obj_id,
    e.cluster_id, NULL::bigint, '', '', '', '', '', COALESCE(e.pgh_context ->> 'actor', ''),
    COALESCE(e.pgh_context ->> 'request_id', ''), COALESCE(e.pgh_context ->> 'reason', ''), e.name::text
  FROM pools_netboxsourceevent e
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'cluster.' || e.pgh_label, 'clusterevent', e.pgh_obj_id,
    e.pgh_obj_id, NULL::bigint, COALESCE(e.cluster_prefix::text, ''), '', '', '', '',
    COALESCE(e.pgh_context ->> 'actor', ''), COALESCE(e.pgh_context ->> 'request_id', ''),
    COALESCE(e.pgh_context ->> 'reason', ''), e.name::text
  FROM pools_clusterevent e
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'connection.' || e.pgh_label, 'connectionevent', e.pgh_obj_id,
    e.cluster_id, NULL::bigint, '', '', '', '', '', COALESCE(e.pgh_context ->> 'actor', ''),
    COALESCE(e.pgh_context ->> 'request_id', ''), COALESCE(e.pgh_context ->> 'reason', ''), e.server::text
  FROM pools_connectionevent e
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'webhook.' || e.pgh_label, 'webhooktargetevent', e.pgh_obj_id,
    NULL::bigint, NULL::bigint, '', '', '', '', '', COALESCE(e.pgh_context ->> 'actor', ''),
    COALESCE(e.pgh_context ->> 'request_id', ''), COALESCE(e.pgh_context ->> 'reason', ''),
    e.name || ' at ' || e.host
  FROM pools_webhooktargetevent e
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'container.' || e.pgh_label, 'containerevent', e.pgh_obj_id,
    s.cluster_id, NULL::bigint, e.cidr::text, '', '', '', '',
    COALESCE(e.pgh_context ->> 'actor', ''), COALESCE(e.pgh_context ->> 'request_id', ''),
    COALESCE(e.pgh_context ->> 'reason', ''), e.name::text
  FROM pools_containerevent e LEFT JOIN pools_addressspace s ON s.id = e.space_id
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'custom_field.' || e.pgh_label, 'customfieldevent', e.pgh_obj_id,
    NULL::bigint, NULL::bigint, '', '', '', '', '', COALESCE(e.pgh_context ->> 'actor', ''),
    COALESCE(e.pgh_context ->> 'request_id', ''), COALESCE(e.pgh_context ->> 'reason', ''), e.name::text
  FROM pools_customfieldevent e
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'dns_name.' || e.pgh_label, 'dnsnameevent', e.pgh_obj_id,
    p.cluster_id, e.pool_id, e.cidr::text, e.holder_kind::text, e.holder_id::text, '', '',
    COALESCE(e.pgh_context ->> 'actor', ''), COALESCE(e.pgh_context ->> 'request_id', ''),
    COALESCE(e.pgh_context ->> 'reason', ''), e.name::text
  FROM pools_dnsnameevent e LEFT JOIN pools_pool p ON p.id = e.pool_id
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'environment.' || e.pgh_label, 'environmentevent', e.pgh_obj_id,
    e.cluster_id, NULL::bigint, '', '', '', e.org::text, e.env::text, COALESCE(e.pgh_context ->> 'actor', ''),
    COALESCE(e.pgh_context ->> 'request_id', ''), COALESCE(e.pgh_context ->> 'reason', ''),
    concat_ws('/', NULLIF(e.org, ''), e.env)
  FROM pools_environmentevent e
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'journal.' || e.pgh_label, 'journalentryevent', e.pgh_obj_id,
    e.cluster_id, CASE t.model WHEN 'pool' THEN e.object_id END, '', '', '', '', '',
    COALESCE(e.pgh_context ->> 'actor', ''), COALESCE(e.pgh_context ->> 'request_id', ''),
    COALESCE(e.pgh_context ->> 'reason', ''), e.text
  FROM pools_journalentryevent e LEFT JOIN django_content_type t ON t.id = e.content_type_id
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at,
    'directory_account.' || CASE WHEN e.refusal <> '' AND e.pgh_label <> 'deleted'
                                 THEN 'sign_in_refused' ELSE e.pgh_label END,
    'directoryaccountevent', e.pgh_obj_id, NULL::bigint, NULL::bigint, '', 'user', e.username::text, '', '',
    COALESCE(e.pgh_context ->> 'actor', ''), COALESCE(e.pgh_context ->> 'request_id', ''),
    e.refusal::text, array_to_string(e.roles, ', ')
  FROM pools_directoryaccountevent e
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at,
    CASE e.kind WHEN 'webauthn' THEN 'passkey' WHEN 'totp' THEN 'authenticator_app' ELSE 'recovery_codes' END
      || '.' || e.pgh_label,
    'factorevent', e.pgh_obj_id::bigint, NULL::bigint, NULL::bigint, '', 'user', e.owner::text, '', '',
    COALESCE(e.pgh_context ->> 'actor', ''), COALESCE(e.pgh_context ->> 'request_id', ''),
    COALESCE(e.pgh_context ->> 'reason', ''), e.name::text
  FROM pools_factorevent e
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'token.' || e.pgh_label, 'tokenevent', e.pgh_obj_id::bigint,
    NULL::bigint, NULL::bigint, '', 'user', e.owner::text, '', '',
    COALESCE(e.pgh_context ->> 'actor', ''), COALESCE(e.pgh_context ->> 'request_id', ''),
    COALESCE(e.pgh_context ->> 'reason', ''), COALESCE('valid until ' || e.expiry::date::text, '')
  FROM pools_tokenevent e;

-- The status of each environment (rule `exhaustion-is-definite`), for whoever reads the database.
CREATE OR REPLACE VIEW env_status_view AS
  SELECT c.name AS cluster, e.org, e.env,
    CASE WHEN e.degraded_since IS NULL THEN 'ok' ELSE 'degraded' END AS status,
    e.reason, e.message, e.degraded_since AS since
  FROM pools_environment e JOIN pools_cluster c ON c.id = e.cluster_id;
