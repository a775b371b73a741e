//! What a combination of options makes go wrong, found before it does.

use crate::channel::contract::Terms;
use crate::policy::Options;

/// Something that will go wrong, or may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trap {
    /// It goes wrong whatever happens.
    Certain(String),
    /// It goes wrong if something else does.
    Possible(String),
}

/// The traps in a layer's options, for all that its channel speaks for.
pub(crate) fn traps(options: &Options, all: &[&Terms]) -> Vec<Trap> {
    let mut found = Vec::new();
    for terms in all {
        let Some(horizon) = terms.horizon else {
            continue;
        };
        let channel = &terms.channel;
        let kept = options.keep(terms).at_least();
        if kept < horizon {
            found.push(Trap::Certain(format!(
                "the channel `{channel}` repeats its messages for {horizon:?}, and their keys are \
                 kept for {kept:?}: a late repeat is handled again"
            )));
        }
        if options.lease >= horizon {
            found.push(Trap::Possible(format!(
                "the channel `{channel}` repeats its messages for {horizon:?} only, and a lease \
                 lasts {:?}: where a process dies, nobody repeats its messages after their leases; \
                 set a shorter `lease`, or use an inbox",
                options.lease
            )));
        }
    }
    found
}

impl Trap {
    /// Says it where only a log can be told.
    pub(crate) fn say(&self) {
        match self {
            Self::Certain(what) => say_certain(what),
            Self::Possible(what) => say_possible(what),
        }
    }
}

fn say_certain(what: &str) {
    tracing::error!("misconfigured: {what}");
}

fn say_possible(what: &str) {
    tracing::warn!("check the options: {what}");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::Keep;

    fn terms(horizon: u64) -> Terms {
        let mut terms = Terms::webhook("hook");
        terms.horizon = Some(Duration::from_secs(horizon));
        terms
    }

    fn found(options: &Options, terms: &Terms) -> (usize, usize) {
        let found = traps(options, &[terms]);
        let certain = found.iter().filter(|it| matches!(it, Trap::Certain(_)));
        let certain = certain.count();
        (certain, found.len() - certain)
    }

    #[test]
    fn the_defaults_have_none_where_the_sender_has_patience() {
        let options = Options::default();
        assert_eq!(found(&options, &terms(3600)), (0, 0));
        assert_eq!(found(&options, &Terms::client("chat")), (0, 0));
    }

    #[test]
    fn keys_that_go_before_the_last_repeat_are_certain_to_fail() {
        let options = Options {
            keep: Some(Keep::For(Duration::from_secs(3599))),
            ..Options::default()
        };
        assert_eq!(found(&options, &terms(3600)), (1, 0));
        assert_eq!(found(&options, &terms(3599)), (0, 0));
    }

    #[test]
    fn a_lease_that_outlasts_the_repeats_fails_where_a_process_dies() {
        let options = Options::default();
        assert_eq!(found(&options, &terms(30)), (0, 1));
        assert_eq!(found(&options, &terms(31)), (0, 0));
    }
}
