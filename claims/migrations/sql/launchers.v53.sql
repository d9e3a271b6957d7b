-- Launcher pods of VMs that have not terminated; `vms` are the VM names in KubeVirt's annotation and label.
CREATE OR REPLACE VIEW claims_launcher_pod AS
SELECT id, cluster_id, namespace, name, uid,
    ARRAY[manifest #>> '{metadata,annotations,kubevirt.io/domain}',
          manifest #>> '{metadata,labels,vm.kubevirt.io/name}'] AS vms,
    (manifest #>> '{metadata,creationTimestamp}')::timestamptz AS created_at
FROM pools_observedobject
WHERE kind = 'Pod' AND missed_at IS NULL
  AND manifest #>> '{metadata,labels,kubevirt.io}' = 'virt-launcher'
  AND COALESCE(manifest #>> '{status,phase}', '') NOT IN ('Succeeded', 'Failed');
