//! Words and numbers for people: templates, spans, shares, and the cleaning of names that come from outside.
//!
//! Every sentence is an English template with named gaps (`Faster by {gain}`). It is looked up through [`Labels`] as it
//! stands in the source, so a translation can move the gaps; numbers are put in afterwards. The terminal and the SVG
//! use [`English`]; the window passes its translations.

use crate::units::{Bytes, Nanos};

/// Looks up a sentence in the reader's language.
///
/// The string passed to [`text`](Self::text) and [`plural`](Self::plural) must be a literal: the translation template is
/// made by reading these calls in the sources.
pub trait Labels {
    /// The translation of an English sentence.
    fn text(&self, english: &'static str) -> String;

    /// The translation that fits the number `n`.
    fn plural(&self, one: &'static str, many: &'static str, n: u64) -> String;

    /// What separates whole numbers from decimals.
    fn decimal_point(&self) -> String {
        ".".to_owned()
    }

    /// Whether the language is written from right to left; charts are then mirrored.
    fn right_to_left(&self) -> bool {
        false
    }
}

/// No translation.
#[derive(Clone, Copy, Debug, Default)]
pub struct English;

impl Labels for English {
    fn text(&self, english: &'static str) -> String {
        english.to_owned()
    }

    fn plural(&self, one: &'static str, many: &'static str, n: u64) -> String {
        if n == 1 { one } else { many }.to_owned()
    }
}

/// Puts values into the `{named}` gaps of a template. Values are not looked into again, and a gap without a value stays
/// as it is, so neither an app called `{gain}` nor a slip in a translation can do harm.
#[must_use]
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() + 16);
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        rest = &rest[open..];
        let gap = rest.find('}').map_or("", |close| &rest[..=close]);
        let name = gap.trim_start_matches('{').trim_end_matches('}');
        let value = values.iter().find(|(own, _)| gap.len() == own.len() + 2 && *own == name);
        let (put, used) = value.map_or(("{", 1), |(_, value)| (*value, gap.len()));
        out.push_str(put);
        rest = &rest[used..];
    }
    out.push_str(rest);
    out
}

/// The unit and the decimals that suit a group of spans shown together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanFormat {
    milliseconds: bool,
    decimals: usize,
}

impl SpanFormat {
    /// About three figures for the largest of these spans in seconds: milliseconds below 0.1 s.
    #[must_use]
    pub fn suiting(seconds: &[f64]) -> Self {
        let largest = seconds.iter().fold(0.0_f64, |m, s| m.max(s.abs()));
        let (milliseconds, decimals) = match largest {
            s if s < 0.1 => (true, 1),
            s if s < 1.0 => (false, 3),
            s if s < 10.0 => (false, 2),
            s if s < 100.0 => (false, 1),
            _ => (false, 0),
        };
        Self { milliseconds, decimals }
    }

    /// The decimals that tell the ticks of an axis apart.
    pub(crate) fn suiting_step(end: f64, step: f64) -> Self {
        let milliseconds = end < 0.1;
        let step = if milliseconds { step * 1e3 } else { step };
        let decimals = (1..9).find(|n| step >= 10_f64.powi(1 - n) * (1.0 - 1e-9)).unwrap_or(9) - 1;
        Self { milliseconds, decimals: usize::try_from(decimals).unwrap_or(0) }
    }

    /// The number without its unit.
    #[must_use]
    pub fn number(self, seconds: f64, labels: &dyn Labels) -> String {
        number(if self.milliseconds { seconds * 1e3 } else { seconds }, self.decimals, labels)
    }

    /// The number with its unit.
    #[must_use]
    pub fn with_unit(self, seconds: f64, labels: &dyn Labels) -> String {
        self.unit(&self.number(seconds, labels), labels)
    }

    /// Two numbers with their unit: `2.80 – 3.50 s`.
    #[must_use]
    pub fn range(self, low: f64, high: f64, labels: &dyn Labels) -> String {
        self.unit(&format!("{} – {}", self.number(low, labels), self.number(high, labels)), labels)
    }

    fn unit(self, value: &str, labels: &dyn Labels) -> String {
        let template = if self.milliseconds { labels.text("{value} ms") } else { labels.text("{value} s") };
        fill(&template, &[("value", value)])
    }
}

/// A number with the given decimals, the reader's decimal point and a true minus sign; never `−0`.
#[must_use]
pub fn number(value: f64, decimals: usize, labels: &dyn Labels) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let negative = value < 0.0 && text.bytes().any(|b| (b'1'..=b'9').contains(&b));
    let text = if decimals > 0 { text.replace('.', &labels.decimal_point()) } else { text };
    if negative { format!("\u{2212}{text}") } else { text }
}

/// One span by itself.
#[must_use]
pub fn span(span: Nanos, labels: &dyn Labels) -> String {
    let seconds = span.as_secs_f64();
    SpanFormat::suiting(&[seconds]).with_unit(seconds, labels)
}

/// A share as per cent, without decimals: `0.93` is `93 %`.
#[must_use]
pub fn percent(share: f64, labels: &dyn Labels) -> String {
    fill(&labels.text("{value} %"), &[("value", &number(share * 100.0, 0, labels))])
}

/// A level of an interval, with the decimal that tells 96.8 % from 95 %.
#[must_use]
pub fn level(level: f64, labels: &dyn Labels) -> String {
    // Rounded down: what is called 95 % must not be 94.96 %.
    let value = number((level * 1000.0).floor() / 10.0, 1, labels);
    fill(&labels.text("{value} %"), &[("value", &value)])
}

/// Bytes in binary units.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
pub fn bytes(bytes: Bytes, labels: &dyn Labels) -> String {
    let exponent = if bytes.0 == 0 { 0 } else { (bytes.0.ilog2() / 10).min(4) };
    let value = bytes.0 as f64 / 1024_f64.powi(exponent.cast_signed());
    let template = match exponent {
        0 => labels.text("{value} B"),
        1 => labels.text("{value} KiB"),
        2 => labels.text("{value} MiB"),
        3 => labels.text("{value} GiB"),
        _ => labels.text("{value} TiB"),
    };
    fill(&template, &[("value", &number(value, usize::from(exponent > 0), labels))])
}

/// A name from outside made safe to show: no control characters (terminal escapes, line breaks, what XML forbids) and
/// none that turn the direction of the text around it.
#[must_use]
pub fn clean(name: &str) -> String {
    name.chars().map(|c| if is_unsafe(c) { '\u{fffd}' } else { c }).collect()
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}')
}

/// At most `max` characters, the rest as an ellipsis.
#[must_use]
pub fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(max.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Breaks text at spaces into lines of at most `width` characters; a longer word gets a line for itself.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn gaps_are_filled_once() {
        assert_eq!(fill("{a}: {b}", &[("a", "{b}"), ("b", "2")]), "{b}: 2");
        assert_eq!(fill("{a} {x} {", &[("a", "1")]), "1 {x} {");
        assert_eq!(fill("{ {a}", &[("a", "1")]), "{ 1");
    }

    #[test]
    fn numbers_share_a_unit_and_know_their_sign() {
        let format = SpanFormat::suiting(&[0.9, -1.5]);
        assert_eq!(format.range(-0.9, 1.5, &English), "\u{2212}0.90 – 1.50 s");
        assert_eq!(SpanFormat::suiting(&[0.0123]).with_unit(0.0123, &English), "12.3 ms");
        assert_eq!(number(-0.001, 1, &English), "0.0");
        assert_eq!(level(0.968_25, &English), "96.8 %");
        assert_eq!(bytes(Bytes(117 << 20), &English), "117.0 MiB");
        assert_eq!(bytes(Bytes(u64::MAX), &English), "16777216.0 TiB");
    }

    #[test]
    fn hostile_names_are_harmless() {
        assert_eq!(clean("a\x1b[31m\u{202e}b\n"), "a\u{fffd}[31m\u{fffd}b\u{fffd}");
        assert_eq!(shorten("abcdef", 4), "abc…");
        assert_eq!(shorten("abcd", 4), "abcd");
    }

    #[test]
    fn lines_are_broken_at_spaces() {
        assert_eq!(wrap("one two  three four", 9), ["one two", "three", "four"]);
    }

    proptest! {
        #[test]
        fn filling_never_panics(template in ".*", value in ".*") {
            let _ = fill(&template, &[("value", &value)]);
        }
    }
}
