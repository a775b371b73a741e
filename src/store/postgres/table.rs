//! Where the store's tables are, and the statements on them.

use tokio_postgres::types::Type;

use crate::error::Error;

/// The name of the main table, with its schema if it has one; the others' names begin with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    schema: Option<String>,
    name: String,
}

/// A call of one of the store's functions.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) types: &'static [Type],
    /// Whether it is worth preparing.
    pub(super) often: bool,
}

/// The calls that the store makes often.
///
/// No two of those that are prepared have the same number of parameters. So a pooler that hands a prepared statement
/// of one connection to another cannot make one call pass for another: the server refuses it.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) begin: Statement,
    pub(super) claim: Statement,
    pub(super) take: Statement,
    pub(super) end: Statement,
    pub(super) settle: Statement,
    pub(super) conclude: Statement,
    pub(super) conclude_all: Statement,
    pub(super) renew: Statement,
    pub(super) look: Statement,
    pub(super) accept: Statement,
    pub(super) turn: Statement,
    pub(super) report: Statement,
}

impl Table {
    /// Reads `name` or `schema.name`.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let (schema, name) = match text.split_once('.') {
            Some((schema, name)) => (Some(schema), name),
            None => (None, text),
        };
        if schema.is_some_and(|schema| !is_plain(schema)) || !is_plain(name) {
            return Err(Error::misconfigured(
                "a table is called `name` or `schema.name`, each of up to 40 of a-z, 0-9 and _",
            ));
        }
        Ok(Self {
            schema: schema.map(str::to_owned),
            name: name.to_owned(),
        })
    }

    /// The outbox's main table.
    pub(super) fn outbox(&self) -> Self {
        Self {
            schema: self.schema.clone(),
            name: format!("{}_effects", self.name),
        }
    }

    pub(super) fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The SQL text with this table's name in the place of the default one.
    pub(super) fn render(&self, sql: &str) -> String {
        let mut rendered = String::with_capacity(sql.len() + sql.len() / 8);
        let mut rest = sql;
        while let Some((before, after)) = rest.split_once(DEFAULT) {
            let end = after.find(|c: char| !(c == '_' || c.is_ascii_alphanumeric()));
            let (suffix, behind) = after.split_at(end.unwrap_or(after.len()));
            rendered.push_str(before);
            rendered.push_str(&self.object(suffix));
            rest = behind;
        }
        rendered.push_str(rest);
        rendered
    }

    /// A table, sequence or function of the store, as it stands in a statement.
    pub(super) fn object(&self, suffix: &str) -> String {
        match &self.schema {
            Some(schema) => format!("\"{schema}\".\"{}{suffix}\"", self.name),
            None => format!("\"{}{suffix}\"", self.name),
        }
    }

    pub(super) fn statements(&self) -> Statements {
        let call = |suffix: &str, types: &'static [Type]| {
            let places: Vec<String> = (1..=types.len()).map(|i| format!("${i}")).collect();
            Statement {
                text: format!(
                    "SELECT * FROM {}({})",
                    self.object(suffix),
                    places.join(", ")
                ),
                types,
                often: true,
            }
        };
        Statements {
            begin: call("_begin", &BEGIN),
            claim: call("_claim", &CLAIM),
            take: call("_take", &TAKE),
            end: call("_end", &END),
            settle: call("_settle", &SETTLE),
            conclude: call("_conclude", &CONCLUDE),
            conclude_all: Statement {
                often: false,
                ..call("_conclude_all", &CONCLUDE_ALL)
            },
            renew: call("_renew", &RENEW),
            look: call("_look", &LOOK),
            accept: call("_accept", &ACCEPT),
            turn: call("_turn", &TURN),
            report: call("_report", &REPORT),
        }
    }
}

impl Default for Table {
    fn default() -> Self {
        Self {
            schema: None,
            name: DEFAULT.to_owned(),
        }
    }
}

fn is_plain(part: &str) -> bool {
    let letters = |c: char| c == '_' || c.is_ascii_lowercase();
    part.len() <= 40
        && part.starts_with(letters)
        && part.chars().all(|c| letters(c) || c.is_ascii_digit())
}

const DEFAULT: &str = "idempotency";

const BEGIN: [Type; 9] = [
    Type::UUID,
    Type::UUID,
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::BYTEA,
    Type::UUID,
    Type::TEXT,
];

const CLAIM: [Type; 12] = [
    Type::UUID_ARRAY,
    Type::UUID_ARRAY,
    Type::INT8_ARRAY,
    Type::TEXT_ARRAY,
    Type::TEXT_ARRAY,
    Type::TEXT_ARRAY,
    Type::BYTEA_ARRAY,
    Type::UUID_ARRAY,
    Type::TEXT_ARRAY,
    Type::BOOL,
    Type::BOOL,
    Type::INT4,
];

const TAKE: [Type; 8] = [
    Type::UUID_ARRAY,
    Type::UUID_ARRAY,
    Type::INT8_ARRAY,
    Type::TEXT_ARRAY,
    Type::TEXT_ARRAY,
    Type::BYTEA_ARRAY,
    Type::UUID_ARRAY,
    Type::TEXT_ARRAY,
];

const END: [Type; 5] = [Type::UUID, Type::INT8, Type::BYTEA, Type::INT8, Type::BOOL];

const SETTLE: [Type; 7] = [
    Type::UUID_ARRAY,
    Type::INT8_ARRAY,
    Type::BYTEA_ARRAY,
    Type::INT8_ARRAY,
    Type::BOOL_ARRAY,
    Type::UUID_ARRAY,
    Type::INT8_ARRAY,
];

const CONCLUDE: [Type; 6] = [
    Type::UUID,
    Type::INT8,
    Type::BYTEA,
    Type::INT8,
    Type::BOOL,
    Type::TEXT,
];

const CONCLUDE_ALL: [Type; 6] = [
    Type::UUID_ARRAY,
    Type::INT8_ARRAY,
    Type::BYTEA_ARRAY,
    Type::INT8_ARRAY,
    Type::BOOL_ARRAY,
    Type::TEXT,
];

const RENEW: [Type; 3] = [Type::UUID_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY];

const LOOK: [Type; 1] = [Type::UUID_ARRAY];

const ACCEPT: [Type; 10] = [
    Type::UUID_ARRAY,
    Type::UUID_ARRAY,
    Type::INT8_ARRAY,
    Type::BOOL_ARRAY,
    Type::INT8_ARRAY,
    Type::TEXT_ARRAY,
    Type::TEXT_ARRAY,
    Type::TEXT_ARRAY,
    Type::TEXT_ARRAY,
    Type::BYTEA_ARRAY,
];

const TURN: [Type; 4] = [Type::INT8, Type::INT8, Type::INT8, Type::INT8];

const REPORT: [Type; 11] = [
    Type::UUID_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::TEXT_ARRAY,
    Type::INT8_ARRAY,
    Type::TEXT_ARRAY,
    Type::INT8_ARRAY,
    Type::BOOL_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_store_begins_with_the_tables() {
        let sql =
            "SELECT nextval('idempotency_token') FROM idempotency t, idempotency_conversation";
        let rendered = Table::parse("app.seen").unwrap().render(sql);
        assert_eq!(
            rendered,
            "SELECT nextval('\"app\".\"seen_token\"') FROM \"app\".\"seen\" t, \"app\".\"seen_conversation\""
        );
    }

    #[test]
    fn names_that_would_need_quoting_are_refused() {
        for name in ["", "a.b.c", "A", "1a", "a b", "a;drop", "a.", ".a", "é"] {
            assert!(Table::parse(name).unwrap_err().is_misconfigured(), "{name}");
        }
        assert!(Table::parse(&"a".repeat(41)).is_err());
        assert!(Table::parse("_app_1.messages_2").is_ok());
    }

    #[test]
    fn no_two_calls_have_the_same_number_of_parameters() {
        let Statements {
            begin,
            claim,
            take,
            end,
            settle,
            conclude,
            conclude_all: _,
            renew,
            look,
            accept,
            turn,
            report,
        } = Table::default().statements();
        let all = [
            begin, claim, take, end, settle, conclude, renew, look, accept, turn, report,
        ];
        let mut counts = all.map(|call| call.types.len());
        counts.sort_unstable();
        assert_eq!(counts, [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    }
}
