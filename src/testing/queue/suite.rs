//! The macro that makes a test of each clause.

/// Makes one `#[tokio::test]` of each clause of the [inbox contract](crate::testing::queue).
///
/// Takes what [`store_contract!`](crate::store_contract) takes: an async function that makes a
/// store which holds nothing yet, and, for a store that keeps its rows through a restart, one that
/// closes and opens it again.
///
/// Needs tokio with `macros` and `rt-multi-thread`, and the feature `testing` of this crate.
#[macro_export]
macro_rules! queue_contract {
    ($fresh:expr) => {
        $crate::__queue_clauses! { $fresh, ();
            accepting {
                a_new_message_is_kept,
                a_repeat_is_told_how_far_its_message_came,
                the_first_bytes_count,
                a_calls_messages_stand_in_its_order,
                keys_differ_by_channel_and_scope,
                odd_texts_and_bytes_come_back,
                a_begun_line_is_given_with_the_answer,
                a_begun_line_is_given_once,
                a_line_that_exists_is_not_given,
                a_given_turn_lapses,
                a_line_that_ended_begins_again,
                of_64_copies_at_once_one_is_new,
            }
            turns {
                a_turn_has_its_messages_in_order,
                a_turn_is_given_once,
                of_64_takers_at_once_one_has_the_turn,
                lines_do_not_wait_for_each_other,
                a_take_keeps_its_limits,
                the_longest_due_line_comes_first,
                a_lapsed_turn_is_taken_over,
                the_next_message_begins_at_one,
                a_lapsed_turn_is_still_its_holders,
                a_renewed_turn_lasts,
                a_renewal_without_a_turn_is_lost,
                a_turn_given_back_is_due_at_once,
                a_turn_can_end_after_a_message,
                tokens_of_turns_rise,
                takers_and_senders_at_once_keep_the_order,
            }
            ending {
                a_turn_goes_on_to_its_end,
                a_message_that_comes_during_the_last_one_is_next,
                no_message_is_lost_while_its_line_ends,
                a_second_report_changes_nothing,
                a_stale_report_changes_nothing,
                a_report_without_a_turn_is_lost,
                reports_are_answered_in_order,
                a_failed_message_holds_its_line,
                attempts_add_up,
                a_failed_message_may_be_passed,
                a_passed_message_comes_back,
                a_dead_message_lets_the_next_one_come,
                a_death_is_reported_once,
            }
            dying {
                a_redriven_message_is_handled_again,
                a_death_is_undone_once,
                a_redriven_message_comes_last,
                a_buried_message_is_gone,
                dead_messages_are_listed_by_pages,
                the_backlog_counts,
                waiting_messages_are_listed,
            }
            keeping {
                a_key_goes_when_its_time_has_ended,
                an_unfinished_message_keeps_its_key,
                a_new_message_extends_its_conversations_keys,
                a_sweep_keeps_its_limit,
                a_forgotten_conversations_messages_go,
                a_run_that_ends_after_forgetting_leaves_nothing,
                a_kept_request_stays_with_its_key,
                a_forgotten_conversations_kept_requests_go,
                a_kept_request_goes_with_its_key,
                an_inbox_has_keys_of_its_own,
            }
        }
    };
    ($fresh:expr, $reopen:expr) => {
        $crate::queue_contract!($fresh);
        $crate::__queue_clauses! { $fresh, ($reopen);
            durable {
                messages_survive_a_restart,
                a_turn_lapses_through_a_restart,
            }
        }
    };
}

/// The tests of some groups of clauses.
#[doc(hidden)]
#[macro_export]
macro_rules! __queue_clauses {
    (@group $fresh:expr, $reopen:tt, $group:ident { $($clause:ident,)+ }) => {
        $($crate::__queue_clauses! { @test $fresh, $reopen, $group, $clause })+
    };
    (@test $fresh:expr, ($($reopen:expr)?), $group:ident, $clause:ident) => {
        #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $clause() {
            let fixture = ($fresh)().await;
            $crate::testing::queue::$group::$clause(fixture $(, $reopen)?).await;
        }
    };
    ($fresh:expr, $reopen:tt; $($group:ident $clauses:tt)+) => {
        $($crate::__queue_clauses! { @group $fresh, $reopen, $group $clauses })+
    };
}
