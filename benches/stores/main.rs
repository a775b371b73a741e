//! What the stores cost, as ratios to what the same work costs without them.
//!
//! ```text
//! cargo bench --bench stores --all-features -- [NAME…] [--rounds N] [--seconds S] [--keys N]
//!     [--in-flight N]
//! ```
//!
//! `--in-flight` is for the parts that ask PostgreSQL: one number instead of all.
//!
//! Every ratio is taken within one run, round after round: all configurations once, then all of
//! them again. The median is printed. Run on a machine that does nothing else; the share of the
//! processors that other processes took is printed beside each figure.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::as_conversions,
    reason = "a program that measures and prints"
)]

#[path = "../../tests/support/cluster.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod cluster;
mod effects;
mod flush;
mod footprint;
mod load;
mod machine;
mod message;
mod options;
mod postgres;
mod rows;
#[path = "../support/seasoned.rs"]
mod seasoned;
mod single;
mod sqlite;
mod table;

fn main() {
    let options = options::Options::read();
    sqlite::run(&options);
    postgres::run(&options);
    effects::run(&options);
}
