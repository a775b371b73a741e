//! The macro that makes a test of each clause.

/// Makes one `#[tokio::test]` of each clause of the [store contract](crate::testing::store).
///
/// Takes an async function that makes a store which holds nothing yet; it is called once per
/// test, and the tests run side by side. It gives the store, or a pair of the store and what must
/// outlive it (see [`Fixture`](crate::testing::store::Fixture)).
///
/// A store that keeps its rows through a restart gives a second async function: it takes what the
/// first one made, closes it, opens it again at the same place and gives it back. The clauses of
/// [`durable`](crate::testing::store::durable) are run too then.
///
/// Needs tokio with `macros` and `rt-multi-thread`, and the feature `testing` of this crate. Put
/// the line into a module of its own where one file tests several stores.
///
/// ```
/// # mod tests {
/// # use tower_idempotency::store::MemoryStore as MyStore;
/// async fn fresh() -> (MyStore, tempfile::TempDir) {
///     let folder = tempfile::tempdir().unwrap();
///     (MyStore::new(), folder)
/// }
///
/// async fn reopen((store, folder): (MyStore, tempfile::TempDir)) -> (MyStore, tempfile::TempDir) {
///     drop(store);
///     (MyStore::new(), folder)
/// }
///
/// tower_idempotency::store_contract!(fresh, reopen);
/// # }
/// ```
#[macro_export]
macro_rules! store_contract {
    ($fresh:expr) => {
        $crate::__store_clauses! { $fresh, ();
            claims {
                a_key_without_a_row_is_run,
                a_running_key_is_busy,
                a_claim_tells_what_is_left_of_the_lease,
                an_attempts_own_lease_is_given_again,
                an_attempts_own_lease_is_given_again_after_it_lapsed,
                an_attempt_that_was_taken_over_is_told_that_another_runs,
                an_attempts_own_claim_extends_its_lease,
                a_done_key_is_replayed,
                a_running_key_with_another_fingerprint_is_other,
                a_done_key_with_another_fingerprint_is_other,
                an_equal_fingerprint_is_the_same_request,
                fingerprints_are_compared_only_where_both_sides_have_one,
                a_lapsed_key_is_taken_over_whatever_its_fingerprint_was,
                keys_that_differ_by_channel_or_scope_are_different,
            }
            leases {
                a_lapsed_lease_is_taken_over_with_a_higher_token,
                each_take_over_counts_an_attempt,
                a_taken_over_lease_lasts_as_long_as_its_claim_asked,
                tokens_rise_across_keys_and_after_release,
                a_renewed_lease_lasts_from_the_renewal,
                a_lapsed_lease_is_renewed_if_nobody_took_over,
                a_lease_that_was_taken_over_is_lost,
                a_lease_is_lost_once_its_run_ended,
                renewals_are_answered_in_order,
            }
            unknown {
                a_lapsed_run_is_unknown_to_a_claim_that_says_so,
                only_what_has_lapsed_is_unknown,
                a_claim_that_does_not_say_so_takes_over,
                what_was_unknown_for_its_time_is_taken_over,
                an_attempts_own_lapsed_run_is_not_unknown_to_it,
                an_unknown_run_is_recorded_by_its_late_owner,
                an_unknown_run_is_released_by_its_late_owner,
                an_unknown_run_is_renewed_by_its_late_owner,
                an_unknown_key_with_another_fingerprint_is_other,
                a_take_over_without_a_fingerprint_keeps_the_rows,
                unknown_keys_of_a_claim_keep_no_others_from_running,
                of_64_mixed_claims_of_an_unknown_run_one_runs,
                a_renewal_of_no_time_ends_the_lease_and_leaves_the_row,
                an_unknown_run_is_marked_by_forgetting,
                an_unknown_run_is_settled_as_done_and_its_owner_is_late,
                an_unknown_run_is_settled_as_not_done_and_runs_again,
                only_an_unknown_run_is_settled_by_others,
            }
            ending {
                a_released_key_runs_again_as_a_first_attempt,
                a_lapsed_lease_is_recorded_if_nobody_took_over,
                a_lapsed_lease_is_released_if_nobody_took_over,
                a_stale_record_changes_nothing_while_the_successor_runs,
                a_stale_release_changes_nothing_while_the_successor_runs,
                a_stale_settlement_changes_nothing_after_the_successor_recorded,
                a_stale_record_does_not_bring_back_a_released_row,
                a_record_after_the_release_does_not_bring_the_row_back,
                a_record_does_not_bring_back_a_swept_row,
                a_second_settlement_is_applied_and_writes_nothing,
                a_done_row_is_not_released,
                a_settlement_without_a_row_is_superseded,
                a_settlement_under_a_token_of_another_key_is_superseded,
            }
            records {
                a_record_comes_back_as_it_was,
                an_empty_body_is_a_record_like_any_other,
                header_lines_keep_their_order_and_repetition,
                bytes_that_are_no_text_come_back,
                trailers_and_frame_borders_come_back,
                a_record_that_was_too_large_comes_back,
                a_record_of_a_megabyte_comes_back,
            }
            names {
                odd_ids_are_names_like_any_other,
                odd_scopes_and_channels_are_names_like_any_other,
                odd_conversations_are_names_like_any_other,
            }
            looks {
                a_look_sees_each_state,
                looks_are_answered_in_order,
                a_look_changes_nothing,
            }
            batches {
                each_key_is_answered_by_itself_and_in_order,
                settlements_of_one_call_are_answered_by_themselves,
                overlapping_claims_in_opposite_order_all_end,
                overlapping_settlements_in_opposite_order_all_end,
                a_repeated_batch_gives_the_same_leases,
                calls_that_ask_nothing_are_answered_nothing,
            }
            races {
                of_64_claims_through_one_handle_one_runs,
                of_64_claims_through_64_handles_one_runs,
                of_64_claims_of_a_lapsed_key_one_runs,
                the_same_claim_64_times_at_once_is_one_lease,
                a_record_and_a_take_over_exclude_each_other,
                a_renewal_and_a_take_over_exclude_each_other,
            }
            cancelling {
                a_claim_given_up_at_any_point_is_found_by_its_nonce,
                a_claim_given_up_at_any_point_blocks_for_a_lease_at_most,
                a_batch_given_up_at_any_point_blocks_no_key_for_longer,
                a_record_given_up_at_any_point_can_be_sent_again,
                a_release_given_up_at_any_point_can_be_sent_again,
                calls_given_up_harm_no_others,
            }
            retention {
                a_record_is_kept_for_its_time,
                a_record_goes_when_its_time_has_ended,
                a_record_whose_time_has_ended_counts_no_more,
                a_repeat_does_not_extend_retention,
                a_key_whose_row_went_is_new,
                a_record_without_a_conversation_is_kept_idle_after_its_run,
                a_conversations_records_go_when_it_was_idle,
                a_new_message_extends_all_records_of_its_conversation,
                a_repeat_does_not_extend_its_conversation,
                another_conversation_extends_nothing,
                a_closed_conversations_records_stay_for_idle,
                a_closed_conversations_records_go_after_idle,
                a_new_message_opens_a_closed_conversation_again,
                a_sweep_removes_no_running_row,
                a_sweep_removes_no_more_than_its_limit,
            }
            forgetting {
                a_forgotten_record_loses_its_payload_and_still_answers,
                a_run_that_ends_after_forgetting_leaves_no_payload,
                the_mark_survives_a_take_over,
                a_release_after_forgetting_leaves_a_tombstone,
                a_lapsed_run_is_marked_too,
                other_conversations_are_left_alone,
                forgetting_counts_its_rows,
                forgetting_twice_is_harmless,
                messages_after_forgetting_are_kept,
                a_tombstone_goes_when_the_records_time_has_ended,
                no_payload_survives_a_race_with_forgetting,
            }
        }
    };
    ($fresh:expr, $reopen:expr) => {
        $crate::store_contract!($fresh);
        $crate::__store_clauses! { $fresh, ($reopen);
            durable {
                records_survive_a_restart,
                leases_survive_a_restart,
                a_lease_lapses_through_a_restart,
                tokens_rise_through_a_restart,
                a_released_key_stays_released_through_a_restart,
                a_mark_survives_a_restart,
                a_conversation_lives_through_a_restart,
            }
        }
    };
}

/// The tests of some groups of clauses.
#[doc(hidden)]
#[macro_export]
macro_rules! __store_clauses {
    (@group $fresh:expr, $reopen:tt, $group:ident { $($clause:ident,)+ }) => {
        $($crate::__store_clauses! { @test $fresh, $reopen, $group, $clause })+
    };
    (@test $fresh:expr, ($($reopen:expr)?), $group:ident, $clause:ident) => {
        #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $clause() {
            let fixture = ($fresh)().await;
            $crate::testing::store::$group::$clause(fixture $(, $reopen)?).await;
        }
    };
    ($fresh:expr, $reopen:tt; $($group:ident $clauses:tt)+) => {
        $($crate::__store_clauses! { @group $fresh, $reopen, $group $clauses })+
    };
}
