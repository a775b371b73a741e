//! What an inbox in PostgreSQL costs, as ratios to what is usually written by hand: one INSERT per
//! message over a pool, and one table from which workers take with SKIP LOCKED, in order.
//!
//! ```text
//! cargo bench --bench inbox --all-features -- [PART…] [--rounds N] [--seconds S] [--keys N]
//!     [--in-flight N]
//! ```
//!
//! Parts: `accept`, `ends` (accepted, handled and done, by 1, 2 and 4 processes), `latency`,
//! `drain`, `history` (drain beside so many done keys), `hot` (others beside a line of 10,000),
//! `size`. Every ratio is taken within one run, round after round. The handler does nothing, unless
//! said. Processes are this program again. Flushes are as they come. `--in-flight` is for `accept`: one
//! number instead of all.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::as_conversions,
    reason = "a program that measures and prints"
)]

mod accept;
mod batches;
mod child;
#[path = "../../tests/support/cluster.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod cluster;
mod jobs;
#[path = "../stores/load.rs"]
mod load;
#[path = "../stores/machine.rs"]
mod machine;
mod message;
#[path = "../stores/options.rs"]
mod options;
mod processes;
#[path = "../support/seasoned.rs"]
mod seasoned;
mod server;
mod sheet;
#[path = "../stores/table.rs"]
mod table;
mod worker;

fn main() {
    if let Some(task) = child::Task::given() {
        child::run(&task);
        return;
    }
    let options = options::Options::read();
    accept::run(&options);
    processes::run(&options);
    batches::run(&options);
}
