-- Branches of the view pools_event_log (pools/sql/event_log.sql): events of VM networks. The block of an
-- event is its first address with a full prefix length, so that a search for the block finds it.
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'network.' || e.pgh_label, 'networkevent', e.pgh_obj_id,
    e.cluster_id, n.pool_id, '', '', '', '', '', COALESCE(e.pgh_context ->> 'actor', ''),
    COALESCE(e.pgh_context ->> 'request_id', ''), COALESCE(e.pgh_context ->> 'reason', ''), e.name::text
  FROM claims_networkevent e LEFT JOIN claims_network n ON n.id = e.pgh_obj_id
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'ippool.' || e.pgh_label, 'ippoolevent', e.pgh_obj_id,
    e.cluster_id, n.pool_id, '', '', '', '', '', COALESCE(e.pgh_context ->> 'actor', ''),
    COALESCE(e.pgh_context ->> 'request_id', ''), COALESCE(e.pgh_context ->> 'reason', ''), e.name::text
  FROM claims_ippoolevent e LEFT JOIN claims_network n ON n.id = e.network_id
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'entry.' || e.pgh_label, 'entryevent', e.pgh_obj_id,
    COALESCE((SELECT cluster_id FROM claims_ippool WHERE id = e.ippool_id),
             (SELECT o.cluster_id FROM claims_ippoolevent o
              WHERE o.pgh_obj_id = e.ippool_id ORDER BY o.pgh_id DESC LIMIT 1)),
    (SELECT n.pool_id FROM claims_ippool i JOIN claims_network n ON n.id = i.network_id
     WHERE i.id = e.ippool_id),
    COALESCE(split_part(e.ips[1], '/', 1) || CASE WHEN e.ips[1] LIKE '%:%' THEN '/128'
                                                  ELSE '/32' END, ''),
    CASE WHEN e.vm = '' THEN 'mac' ELSE 'vm' END,
    CASE WHEN e.vm = '' THEN e.mac::text ELSE e.namespace || '/' || e.vm END, '', '',
    COALESCE(e.pgh_context ->> 'actor', ''), COALESCE(e.pgh_context ->> 'request_id', ''),
    COALESCE(e.pgh_context ->> 'reason', ''), e.mac::text || ' ' || array_to_string(e.ips, ', ')
  FROM claims_entryevent e
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'ipamclaim.' || e.pgh_label, 'ipamclaimevent', e.pgh_obj_id,
    e.cluster_id, (SELECT pool_id FROM claims_network WHERE id = e.network_id),
    COALESCE(split_part(e.ips[1], '/', 1) || CASE WHEN e.ips[1] LIKE '%:%' THEN '/128'
                                                  ELSE '/32' END, ''),
    CASE WHEN e.vm <> '' THEN 'vm' WHEN e.mac IS NOT NULL THEN 'mac' ELSE '' END,
    CASE WHEN e.vm <> '' THEN e.namespace || '/' || e.vm ELSE COALESCE(e.mac::text, '') END, '', '',
    COALESCE(e.pgh_context ->> 'actor', ''), COALESCE(e.pgh_context ->> 'request_id', ''),
    COALESCE(e.pgh_context ->> 'reason', ''), e.namespace || '/' || e.name
  FROM claims_ipamclaimevent e
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'membership.' || e.pgh_label, 'membershipevent', e.pgh_obj_id,
    e.cluster_id, NULL::bigint, '', CASE WHEN e.user_id IS NULL THEN 'group' ELSE 'user' END,
    COALESCE(u.username, g.name, '')::text, '', '', COALESCE(e.pgh_context ->> 'actor', ''),
    COALESCE(e.pgh_context ->> 'request_id', ''), COALESCE(e.pgh_context ->> 'reason', ''),
    'VM owner in ' || array_to_string(e.namespaces, ', ')
  FROM claims_membershipevent e LEFT JOIN auth_user u ON u.id = e.user_id
    LEFT JOIN auth_group g ON g.id = e.group_id
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'wave.' || e.pgh_label, 'waveevent', e.pgh_obj_id,
    e.cluster_id, NULL::bigint, '', '', '', '', '', COALESCE(e.pgh_context ->> 'actor', ''),
    COALESCE(e.pgh_context ->> 'request_id', ''), COALESCE(e.pgh_context ->> 'reason', ''), e.name::text
  FROM claims_waveevent e
UNION ALL
  SELECT e.pgh_id, e.pgh_created_at, 'network_settings.' || e.pgh_label, 'networksettingsevent',
    e.pgh_obj_id, e.cluster_id, NULL::bigint, '', '', '', '', '',
    COALESCE(e.pgh_context ->> 'actor', ''), COALESCE(e.pgh_context ->> 'request_id', ''),
    COALESCE(e.pgh_context ->> 'reason', ''), e.annotation::text
  FROM claims_networksettingsevent e
