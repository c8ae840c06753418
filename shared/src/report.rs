//! A comparison as CSV (RFC 4180) and as a plain-text table.

use std::fmt::Write as _;

use crate::comparison::Comparison;
use crate::stats::Spread;
use crate::summary::{ConditionSummary, Summary};
use crate::text::{English, Labels, SpanFormat, wrap};
use crate::words;

/// Width of the column that names a line.
const NAME: usize = 18;

impl Comparison {
    /// Every start, one a line, in the order in which they ran; those that do not count follow with the reason and no
    /// time. Times in seconds with a decimal point, whatever the locale.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut csv =
            String::from("app,order,round,condition,seconds,bytes_read,milestone,cold,left_out\r\n");
        let app = field(&self.app.0);
        let (milestone, cold) = (identifier(&self.milestone), identifier(&self.cold));
        for (order, run) in (1..).zip(&self.runs) {
            let (seconds, nanos) = (run.time.0 / 1_000_000_000, run.time.0 % 1_000_000_000);
            let read = run.read.map(|bytes| bytes.0.to_string()).unwrap_or_default();
            let condition = identifier(&run.condition);
            let round = run.round;
            // Writing to a string cannot fail.
            let _ = write!(
                csv,
                "{app},{order},{round},{condition},{seconds}.{nanos:09},{read},{milestone},{cold},\r\n"
            );
        }
        for one in &self.left_out {
            let (condition, reason) = (identifier(&one.condition), field(&one.reason));
            let _ = write!(csv, "{app},,{},{condition},,,{milestone},{cold},{reason}\r\n", one.round);
        }
        csv
    }

    /// The figures as plain text of at most `width` columns (at least 40 are used; names and reasons that hold no
    /// space may be longer): no escapes, no colours.
    #[must_use]
    pub fn to_table(&self, width: usize) -> String {
        Table { width: width.max(40), labels: &English, lines: Vec::new() }.comparison(self)
    }
}

/// The identifier that a value has in JSON.
fn identifier(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}

/// A CSV field, quoted if it has to be. A leading `=`, `+`, `-` or `@` gets an apostrophe: spreadsheets would run it.
fn field(text: &str) -> String {
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

struct Table<'a> {
    width: usize,
    labels: &'a dyn Labels,
    lines: Vec<String>,
}

impl Table<'_> {
    fn comparison(mut self, comparison: &Comparison) -> String {
        let summary = comparison.summary();
        self.paragraph(&format!(
            "{}: {}",
            words::name(comparison),
            lower_first(&words::milestone(comparison.milestone, self.labels))
        ));
        self.blank();
        self.conditions(&summary);
        self.blank();
        self.gain(&summary);
        self.row("Read ahead", &words::read_ahead(comparison, &summary, self.labels));
        for drive in &comparison.drives {
            self.row("Drive", &words::drive(drive, self.labels));
        }
        self.blank();
        self.paragraph(&words::cold_method(comparison.cold, self.labels));
        for remark in words::remarks(comparison, &summary, self.labels) {
            self.bullet(&remark);
        }
        self.blank();
        self.paragraph(&format!("{}.", words::verdict(&summary.verdict, self.labels)));
        self.lines.join("\n") + "\n"
    }

    fn conditions(&mut self, summary: &Summary) {
        let all: Vec<f64> = summary.conditions.iter().flat_map(|one| one.times.iter().copied()).collect();
        let format = SpanFormat::suiting(&all);
        let (mut interval, mut range) = (false, false);
        self.lines.push(format!("{:NAME$}{:>9}  {:17}  {}", "", "median", "spread", "every start"));
        for one in &summary.conditions {
            interval |= matches!(one.spread, Some(Spread::Interval(_)));
            range |= matches!(one.spread, Some(Spread::Range { .. }));
            self.condition(one, format);
        }
        self.blank();
        let labelled = match (interval, range) {
            (true, true) => {
                "Spread is the interval of the median at 95 % or more; below six starts it is the plain range."
            }
            (true, false) => "Spread is the interval of the median at 95 % or more.",
            _ => "Spread is the plain range: an interval of the median needs six starts.",
        };
        self.paragraph(labelled);
    }

    fn condition(&mut self, one: &ConditionSummary, format: SpanFormat) {
        let name = words::condition(one.condition, self.labels);
        let (Some(median), Some(spread)) = (one.median, one.spread) else {
            self.lines.push(format!("{name:NAME$}{:>9}", "no starts"));
            return;
        };
        let (low, high) = spread.ends();
        let numbers: Vec<String> = one.times.iter().map(|t| format.number(*t, self.labels)).collect();
        let head = format!(
            "{name:NAME$}{:>9}  {:17}  ",
            format.with_unit(median, self.labels),
            format.range(low, high, self.labels)
        );
        self.hanging(&head, &numbers.join(" "));
    }

    fn gain(&mut self, summary: &Summary) {
        if let Some(gain) = &summary.gain {
            self.row("Gained", &words::gained_time(gain, self.labels));
            if let Some(share) = words::gained_share(gain, self.labels) {
                self.row("", &format!("{share} of a cold start"));
            }
        }
        self.row("Gap closed", &words::gap_closed(summary.gap_closed, self.labels));
    }

    fn row(&mut self, name: &str, text: &str) {
        self.hanging(&format!("{name:NAME$}"), text);
    }

    fn bullet(&mut self, text: &str) {
        self.hanging("- ", text);
    }

    /// `head`, then the text beside it, wrapped in a column of its own.
    fn hanging(&mut self, head: &str, text: &str) {
        let indent = head.chars().count();
        let lines = wrap(text, self.width.saturating_sub(indent).max(20));
        let indents = std::iter::once(head.to_owned()).chain(std::iter::repeat(" ".repeat(indent)));
        self.lines.extend(indents.zip(lines).map(|(indent, line)| indent + &line));
    }

    fn paragraph(&mut self, text: &str) {
        self.lines.extend(wrap(text, self.width));
    }

    fn blank(&mut self) {
        self.lines.push(String::new());
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
#[path = "report/tests.rs"]
mod tests;
