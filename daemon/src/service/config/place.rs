//! Where in a text.

use std::fmt;

/// A line and a column, both counted from 1; a column is a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Place {
    /// Where in the text this byte is.
    pub(super) fn of(text: &str, byte: usize) -> Self {
        let before = &text.as_bytes()[..byte.min(text.len())];
        let line = before.split(|&byte| byte == b'\n').count();
        let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        Self { line, column: String::from_utf8_lossy(&before[start..]).chars().count() + 1 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
