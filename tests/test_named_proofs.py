"""Each rule that reconciling must keep has tests that prove it, so that none of them gets lost."""

from __future__ import annotations

import pathlib
import re

import pytest

_ROOT = pathlib.Path(__file__).parents[1]
PROOFS = {
    "cold start with 0, 1, 10,000 objects": [
        "tests/handlers/test_nodes_ready.py::test_cold_start_with_many_nodes",
        "tests/reconcile/test_cold_start.py::test_cold_start",
        "tests/reconcile/test_cold_start.py::test_ten_thousand",
    ],
    "an event that was lost is found by the next list": [
        "tests/reconcile/test_absence.py::test_an_event_that_was_lost_is_found_by_the_next_list",
    ],
    "410 on a watch and on continue, as HTTP and as an ERROR event": [
        "tests/reconcile/test_absence.py::test_a_list_begins_again_when_its_continue_expired",
        "tests/reconcile/test_watch.py::test_gone_is_listed_again_and_bookmarks_move_on",
    ],
    "a bookmark moves the position, and no object": [
        "tests/reconcile/test_bookmarks.py::test_a_bookmark_moves_the_position_and_no_object",
        "tests/reconcile/test_bookmarks.py::test_whoever_watches_next_goes_on_from_it",
        "tests/reconcile/test_watch.py::test_gone_is_listed_again_and_bookmarks_move_on",
    ],
    "events twice and out of order": [
        "tests/handlers/test_nodes_gone.py::test_an_old_event_releases_nothing",
        "tests/handlers/test_nodes_gone.py::test_what_a_watch_tells_twice_of_a_release_is_asked_and_done",
        "tests/reconcile/test_told.py::test_doubled_events_change_nothing",
        "tests/reconcile/test_told.py::test_late_events_are_dropped",
    ],
    "two replicas hand out nothing twice": [
        "tests/reconcile/test_leases.py::test_one_at_a_time",
        "tests/reconcile/test_two_workers.py::test_replicas_at_once",
        "tests/reconcile/test_two_workers.py::test_stopped_for_longer_than_its_lease",
    ],
    "409: read again and worked out anew": [
        "tests/handlers/test_nodes_conflicts.py::test_what_the_agent_wrote_meanwhile_is_kept",
        "tests/reconcile/test_writes.py::test_a_conflict_is_tried_again_with_what_is_there_now",
    ],
    "fields of others are shown and not forced": [
        "tests/handlers/test_pools_managed.py::test_what_another_manager_owns_is_shown_and_not_forced",
        "tests/reconcile/test_writes.py::test_fields_of_another_manager_are_shown_and_not_forced",
    ],
    "a second pass writes nothing": [
        "tests/handlers/test_nodes_recorded.py::test_a_second_pass_writes_nothing",
        "tests/reconcile/test_cold_start.py::test_a_second_pass_writes_nothing",
    ],
    "deletion with a finalizer, and a crash in between": [
        "tests/handlers/test_nodes_finalizer.py::test_it_keeps_its_blocks_while_it_is_there",
        "tests/handlers/test_nodes_finalizer.py::test_what_a_watch_tells",
        "tests/handlers/test_nodes_finalizer.py::test_a_crash_between_release_and_the_end",
    ],
    "deleted and made again under the same name": [
        "tests/handlers/test_nodes_gone.py::test_the_end_of_the_old_object_takes_nothing_from_the_new_one",
        "tests/reconcile/test_absence.py::test_replaced_while_it_was_missed",
    ],
    "unknown fields are kept": [
        "tests/handlers/test_nodes_conflicts.py::test_what_newer_versions_keep_beside_the_cidrs_stays",
        "tests/reconcile/test_writes.py::test_fields_that_are_unknown_and_finalizers_of_others_are_kept",
    ],
    "the API server is down; one bad object": [
        "tests/handlers/test_nodes_gone.py::test_a_node_that_cannot_be_understood_keeps_what_it_has",
        "tests/handlers/test_pools_observed.py::test_one_bad_object_fails_alone",
        "tests/handlers/test_pools_server_down.py::test_the_register_stays_authoritative",
        "tests/handlers/test_pools_server_down.py::test_changes_do_not_hammer_at_a_server_that_is_down",
        "tests/reconcile/test_unknown_is_not_absent.py::test_back_off_grows_and_has_jitter",
        "tests/reconcile/test_writes.py::test_one_refused_object_does_not_stop_the_others",
    ],
    "clock skew": [
        "tests/handlers/test_nodes_clocks.py::test_clock_skew",
        "tests/handlers/test_nodes_clocks.py::test_the_databases_clock_is_set_back",
    ],
    "the webhook: uid, dry run, malformed and large bodies": [
        "tests/edges/test_webhook_reviews.py::test_what_is_no_review",
        "tests/edges/test_webhook_reviews.py::test_the_uid_of_the_question_is_echoed",
        "tests/edges/test_webhook_reviews.py::test_a_body_of_three_mebibytes",
        "tests/edges/test_webhook_reviews.py::test_nothing_is_written_and_asking_twice_is_the_same",
        "tests/kube/test_pool_webhook.py::test_a_dry_run_is_judged_and_changes_nothing",
    ],
    "the webhook is down": [
        "tests/handlers/test_pools_webhook_down.py::test_with_fail_writes_of_pools_wait_and_nothing_else",
        "tests/handlers/test_pools_webhook_down.py::test_with_ignore_what_was_not_judged_is_found",
        "tests/handlers/test_pools_webhook_down.py::test_it_is_documented",
        "tests/kube/test_api_webhooks.py::test_when_it_is_down_the_policy_decides",
    ],
    "drift: adopt, correct, ignore": [
        "tests/handlers/test_pools_managed.py::test_an_object_that_was_deleted_is_made_again",
        "tests/handlers/test_pools_managed.py::test_what_nobody_else_owns_is_corrected",
        "tests/handlers/test_pools_managed.py::test_applying_makes_the_register_right",
        "tests/handlers/test_pools_managed.py::test_adopting_takes_the_objects_values",
        "tests/handlers/test_pools_managed.py::test_ignored_until_a_value_changes",
    ],
    "orphans, leaks and duplicates are told": [
        "tests/handlers/test_nodes_findings.py::test_two_nodes_with_one_block_the_first_keeps_it",
        "tests/handlers/test_nodes_findings.py::test_the_other_takes_it_over_when_the_first_lets_go",
        "tests/handlers/test_nodes_findings.py::test_a_cidr_outside_its_pool_is_an_orphan",
    ],
    "least privilege": [
        "tests/edges/test_webhook_deploy.py::test_observing_takes_what_the_role_grants",
        "tests/edges/test_webhook_deploy.py::test_managing_takes_what_the_role_grants",
        "tests/edges/test_webhook_deploy.py::test_nothing_is_granted_at_large",
    ],
    "clusters with v2alpha1 only, v2 only, both": [
        "tests/handlers/test_pools_observed.py::test_both_versions_of_the_proposal_are_read",
        "tests/handlers/test_pools_observed.py::test_v2alpha1_only",
        "tests/handlers/test_pools_versions.py::test_the_version_that_is_served_is_read",
        "tests/handlers/test_pools_versions.py::test_the_version_that_is_served_is_written",
        "tests/handlers/test_pools_versions.py::test_an_upgrade_in_between",
        "tests/handlers/test_pools_versions.py::test_what_cannot_be_discovered_is_not_absent",
    ],
    "409 on a write": [
        "tests/handlers/test_nodes_conflicts.py::test_what_the_agent_wrote_meanwhile_is_kept",
        "tests/reconcile/test_writes.py::test_a_conflict_is_tried_again_with_what_is_there_now",
        "tests/reconcile/test_writes.py::test_after_five_times_it_is_shown",
    ],
    "410 on a watch and on continue": [
        "tests/reconcile/test_absence.py::test_a_list_begins_again_when_its_continue_expired",
        "tests/reconcile/test_unknown_is_not_absent.py::test_unknown_is_not_absent",
        "tests/reconcile/test_watch.py::test_gone_is_listed_again_and_bookmarks_move_on",
    ],
    "whatever else an API server or the way to it may answer": [
        "tests/handlers/test_faults_of_a_cluster.py::test_nothing_is_released",
        "tests/handlers/test_faults_of_a_cluster.py::test_a_write_that_fails_is_done_by_the_next_pass",
        "tests/handlers/test_faults_of_a_cluster.py::test_no_connection",
        "tests/handlers/test_faults_of_a_cluster.py::test_a_tls_error",
        "tests/reconcile/test_unknown_is_not_absent.py::test_unknown_is_not_absent",
        "tests/reconcile/test_unknown_is_not_absent.py::test_retry_after_is_kept_to_within_reason",
    ],
    "rights, kinds and identity that change": [
        "tests/reconcile/test_told.py::test_another_cluster_is_not_written_to",
        "tests/reconcile/test_unknown_is_not_absent.py::test_unknown_is_not_absent",
        "tests/reconcile/test_unknown_is_not_absent.py::test_a_crd_that_is_uninstalled_is_a_finding_and_ends_nothing",
        "tests/reconcile/test_unknown_is_not_absent.py::test_another_cluster_behind_the_address",
    ],
    "half-written": [
        "tests/handlers/test_nodes_conflicts.py::test_a_write_that_failed_costs_no_second_block",
        "tests/reconcile/test_writes.py::test_written_and_the_answer_lost",
        "tests/reconcile/test_writes.py::test_half_of_the_objects_written",
    ],
    "the webhook is slow, down, asked twice, asked to try": [
        "tests/edges/test_webhook_reviews.py::test_nothing_is_written_and_asking_twice_is_the_same",
        "tests/edges/test_webhook_reviews.py::test_when_the_database_is_away",
        "tests/edges/test_webhook_reviews.py::test_a_slow_statement_is_given_up",
        "tests/edges/test_webhook_rules.py::test_a_deletion_without_the_old_object",
        "tests/kube/test_api_webhooks.py::test_when_it_is_down_the_policy_decides",
        "tests/kube/test_pool_webhook.py::test_a_dry_run_is_judged_and_changes_nothing",
    ],
    "two workers on one cluster": [
        "tests/reconcile/test_leases.py::test_a_worker_that_was_stopped_past_its_lease_writes_nothing",
        "tests/reconcile/test_two_workers.py::test_a_lease_is_one_workers",
        "tests/reconcile/test_two_workers.py::test_replicas_at_once",
        "tests/reconcile/test_two_workers.py::test_stopped_for_longer_than_its_lease",
        "tests/reconcile/test_two_workers.py::test_killed_in_the_midst_of_its_pass",
    ],
    "poisonous objects": [
        "tests/handlers/test_poison.py::test_one_object",
        "tests/handlers/test_poison.py::test_a_list_that_is_none_concludes_nothing",
        "tests/reconcile/test_poison.py::test_a_poisonous_object_fails_alone",
        "tests/reconcile/test_poison.py::test_what_no_database_holds_has_no_text",
        "tests/reconcile/test_poison.py::test_numbers_are_stored_as_they_are_or_not_at_all",
    ],
    "a restored backup": [
        "tests/failure/test_recovery_clusters.py::test_the_first_pass_records_what_is_used_and_the_next_one_serves",
        "tests/failure/test_restore_drill.py::test_the_drill",
        "tests/handlers/test_restored_backup.py::test_what_was_handed_out_since_is_recorded_and_not_given_again",
        "tests/handlers/test_restored_backup.py::test_a_block_that_moved_to_another_node",
        "tests/handlers/test_restored_backup.py::test_nodes_that_came_and_went",
        "tests/handlers/test_restored_backup.py::test_pools_that_changed_since",
        "tests/handlers/test_restored_backup.py::test_the_watch_goes_on_from_the_older_position",
        "tests/handlers/test_restored_backup.py::test_when_the_older_position_is_gone_the_nodes_are_listed_first",
        "tests/handlers/test_restored_backup.py::test_a_block_that_was_about_to_be_told",
    ],
    "a cluster that hangs": [
        "tests/reconcile/test_watch.py::test_a_cluster_that_hangs_holds_up_no_other",
    ],
    "whereabouts#207: an owner made between two lists": [
        "tests/claims/ipamclaims/test_findings.py::test_a_claim_that_is_younger_than_the_list_of_vms",
        "tests/handlers/test_nodes_findings.py::test_a_block_whose_node_comes_after_the_list_is_no_leak",
        "tests/leaks/test_nodes.py::test_a_block_that_was_allocated_while_the_cluster_was_listed",
        "tests/reconcile/test_absence.py::test_what_came_in_after_the_list_began_is_not_missed",
    ],
    "whereabouts#176: the same name, another uid": [
        "tests/claims/ipamclaims/test_findings.py::test_the_owner_is_told_by_its_uid",
        "tests/claims/ipamclaims/test_life.py::test_a_vm_of_the_same_name_is_another_vm",
        "tests/handlers/test_nodes_gone.py::test_a_node_of_the_same_name_keeps_what_it_lists",
        "tests/handlers/test_pools_observed.py::test_a_pool_made_again_with_another_mask_size",
        "tests/leaks/test_nodes.py::test_another_node_of_the_name_is_not_the_holder",
        "tests/leaks/test_nodes.py::test_a_holder_without_a_uid_is_told_by_its_name",
        "tests/leaks/test_reports.py::test_the_same_name_with_another_uid_is_not_the_holder",
        "tests/leaks/test_vms.py::test_a_vm_that_was_made_anew_is_not_the_owner",
        "tests/reconcile/test_absence.py::test_the_same_name_and_another_uid_is_another_object",
        "tests/reconcile/test_told.py::test_deleted_and_made_again",
    ],
    "cilium#41986: an in-use CIDR under another pool's name": [
        "tests/handlers/test_nodes_conflicts.py::test_a_cidr_that_the_pool_lost_serves_nobody",
        "tests/handlers/test_nodes_findings.py::test_a_block_listed_under_the_pools_former_name_is_in_use",
        "tests/handlers/test_pools_observed.py::test_an_orphan_is_not_given_to_another_pool",
        "tests/leaks/test_nodes.py::test_a_cidr_that_is_removed_while_in_use_and_comes_back_in_another_pool",
    ],
    "an error is taken for an end": [
        "tests/claims/ipamclaims/test_life.py::test_a_list_that_fails_releases_nothing",
        "tests/handlers/test_nodes_gone.py::test_a_list_that_failed_is_not_an_empty_one",
        "tests/handlers/test_nodes_gone.py::test_when_it_cannot_be_asked_nothing_is_released",
        "tests/leaks/test_nodes.py::test_an_error_is_no_observation",
        "tests/leaks/test_vms.py::test_an_error_of_one_list_is_no_observation",
        "tests/reconcile/test_absence.py::test_one_list_without_it_is_not_its_end",
        "tests/reconcile/test_absence.py::test_two_complete_lists_apart",
        "tests/reconcile/test_absence.py::test_a_failed_list_between_two_counts_for_nothing",
    ],
    "cilium#21482: handing out before everything in use is known": [
        "tests/claims/ipamclaims/test_life.py::test_nothing_is_granted_before_all_is_known",
        "tests/handlers/test_nodes_ready.py::test_a_first_pass_hands_out_nothing_that_the_last_node_lists",
        "tests/handlers/test_nodes_ready.py::test_a_process_that_started_goes_on_from_what_the_register_knows",
        "tests/handlers/test_nodes_ready.py::test_nobody_is_served_by_events_that_do_not_follow_a_list",
        "tests/handlers/test_nodes_ready.py::test_what_another_operator_did_meanwhile_is_told_first",
        "tests/handlers/test_nodes_ready.py::test_a_list_that_failed_makes_nobody_ready",
        "tests/handlers/test_nodes_ready.py::test_nor_is_anybody_served_while_the_pools_cannot_be_listed",
        "tests/leaks/test_nodes.py::test_after_a_restart_nothing_is_concluded_before_a_full_pass",
        "tests/leaks/test_nodes.py::test_a_cluster_that_was_never_listed_has_no_leaks",
        "tests/reconcile/test_cold_start.py::test_a_kind_that_was_never_listed_concludes_nothing",
    ],
    "kubevirt#13709: two objects of one owner": [
        "tests/claims/ipamclaims/test_conflicts.py::test_an_address_of_an_older_vm_of_the_same_name",
        "tests/claims/ipamclaims/test_life.py::test_migration_changes_the_owner_pod_and_nothing_else",
        "tests/claims/ipamclaims/test_life.py::test_a_vm_of_the_same_name_is_another_vm",
        "tests/claims/ipamclaims/test_life.py::test_a_claim_made_anew_for_the_same_vm_gets_its_addresses_back",
        "tests/claims/workloads/test_workloads_followed.py::test_a_live_migration",
        "tests/core/test_workloads_vms.py::test_a_live_migration_is_one_workload",
        "tests/handlers/test_live_migration.py::test_a_holder_keeps_its_block_while_nodes_come_and_go",
        "tests/handlers/test_live_migration.py::test_another_owner_of_the_name_does_not_release_it",
        "tests/handlers/test_live_migration.py::test_a_block_that_moves_between_nodes_is_never_free",
        "tests/handlers/test_live_migration.py::test_two_objects_that_name_one_uid_are_one",
        "tests/leaks/test_reports.py::test_two_pods_of_one_vm_name_it_twice",
        "tests/leaks/test_vms.py::test_during_a_live_migration_the_address_is_the_vms",
    ],
}


@pytest.mark.parametrize("rule", PROOFS)
def test_its_tests_exist(rule: str) -> None:
    for proof in PROOFS[rule]:
        path, name = proof.split("::")
        text = (_ROOT / path).read_text()
        assert re.search(rf"^ *(?:async )?def {name}\(", text, re.MULTILINE), proof
