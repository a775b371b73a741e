//! The bot of a shop: "order" asks to confirm, "yes" places the order and asks for a slot.
//!
//! Each text is read as the answer to the last question. That is why a repeat hurts: a second
//! "yes" orders again, or answers a question that it was never meant for.

/// The question that the customer was asked last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Start,
    Confirm,
    Slot,
}

/// What the bot does about a text.
pub(crate) struct Answer {
    /// What it says.
    pub(crate) text: String,
    /// The total of the order that it places.
    pub(crate) order: Option<&'static str>,
    /// The question that is open now.
    pub(crate) next: Step,
}

impl Step {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Confirm => "confirm",
            Self::Slot => "slot",
        }
    }

    pub(crate) fn named(name: &str) -> Self {
        match name {
            "confirm" => Self::Confirm,
            "slot" => Self::Slot,
            _ => Self::Start,
        }
    }
}

/// What the bot does about `text` when `step` is the open question.
pub(crate) fn answer(step: Step, text: &str) -> Answer {
    let word = text.trim().to_lowercase();
    match (step, word.as_str()) {
        (_, "order") => say("Confirm the order of £48.00?", Step::Confirm),
        (Step::Confirm, "yes") => Answer {
            order: Some("£48.00"),
            ..say("Which delivery slot would you like?", Step::Slot)
        },
        (Step::Confirm, "no") => say("Nothing was ordered.", Step::Start),
        (Step::Confirm, _) => say("Please say yes or no.", Step::Confirm),
        (Step::Slot, "yes" | "no" | "") => say("Which delivery slot would you like?", Step::Slot),
        (Step::Slot, slot) => say(&format!("See you then: {slot}."), Step::Start),
        (Step::Start, _) => say("Say \"order\" to order.", Step::Start),
    }
}

fn say(text: &str, next: Step) -> Answer {
    Answer {
        text: text.to_owned(),
        order: None,
        next,
    }
}
