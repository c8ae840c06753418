//! The `Exec` key: from the value to the arguments of the program, started with no file.
//!
//! In this order, as the specification says: the value is unescaped as any string (done before), split and unquoted,
//! and then the field codes are expanded. Quoting follows the shell, as desktops do: besides double quotes single ones
//! and a backslash outside quotes are understood, which real files use although the specification knows neither.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// What field codes stand for.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    /// `%i`: `--icon` and this; nothing if `None`.
    pub icon: Option<&'a str>,
    /// `%c`: the name in the person's language.
    pub name: &'a str,
    /// `%k`: where the desktop entry is.
    pub location: &'a OsStr,
}

/// An `Exec` value that no program can be started from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// A quote that never closes, or a backslash with nothing behind it.
    #[error("Exec ends within a quotation")]
    Unterminated,
    /// A code that the specification does not know.
    #[error("Exec has the unknown field code %{0}")]
    UnknownField(char),
    /// A `%` at the end.
    #[error("Exec ends with a lone %")]
    LonePercent,
    /// `%i` stands for two arguments and must be one of its own.
    #[error("Exec has %i within an argument")]
    IconInArgument,
    /// No program.
    #[error("Exec names no program")]
    Empty,
}

/// The program and its arguments.
///
/// # Errors
///
/// If the value breaks the rules in a way that leaves open what was meant.
pub fn arguments(exec: &str, fields: Fields<'_>) -> Result<Vec<OsString>, ExecError> {
    let mut arguments = Vec::new();
    for word in split(exec)? {
        expand(&word, fields, &mut arguments)?;
    }
    if arguments.first().is_none_or(|program| program.is_empty()) {
        return Err(ExecError::Empty);
    }
    Ok(arguments)
}

/// One argument before its field codes are expanded.
#[derive(Debug, Default)]
struct Word {
    text: String,
    /// Whether any of it was quoted: `""` is an argument, a lone `%f` without a file is none.
    quoted: bool,
}

fn split(exec: &str) -> Result<Vec<Word>, ExecError> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut chars = exec.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '"' | '\'' => {
                let word = word.get_or_insert_default();
                word.quoted = true;
                quoted(c, &mut chars, &mut word.text)?;
            }
            '\\' => {
                let next = chars.next().ok_or(ExecError::Unterminated)?;
                word.get_or_insert_default().text.push(next);
            }
            c => word.get_or_insert_default().text.push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Up to the closing quote. In double quotes a backslash escapes `"`, `` ` ``, `$` and `\`, and is itself elsewhere.
fn quoted(quote: char, chars: &mut std::str::Chars<'_>, text: &mut String) -> Result<(), ExecError> {
    loop {
        match chars.next().ok_or(ExecError::Unterminated)? {
            c if c == quote => return Ok(()),
            '\\' if quote == '"' => match chars.next().ok_or(ExecError::Unterminated)? {
                c @ ('"' | '`' | '$' | '\\') => text.push(c),
                c => text.extend(['\\', c]),
            },
            c => text.push(c),
        }
    }
}

fn expand(word: &Word, fields: Fields<'_>, arguments: &mut Vec<OsString>) -> Result<(), ExecError> {
    if word.text == "%i" && !word.quoted {
        arguments.extend(fields.icon.into_iter().flat_map(|icon| ["--icon".into(), icon.into()]));
        return Ok(());
    }
    let mut expanded = Vec::with_capacity(word.text.len());
    let mut dropped = false;
    let mut chars = word.text.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            expanded.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        match chars.next().ok_or(ExecError::LonePercent)? {
            '%' => expanded.push(b'%'),
            'c' => expanded.extend_from_slice(fields.name.as_bytes()),
            'k' => expanded.extend_from_slice(fields.location.as_bytes()),
            'i' => return Err(ExecError::IconInArgument),
            // Files, of which there are none, and what was taken out of the specification.
            'f' | 'F' | 'u' | 'U' | 'd' | 'D' | 'n' | 'N' | 'v' | 'm' => dropped = true,
            other => return Err(ExecError::UnknownField(other)),
        }
    }
    if !(dropped && expanded.is_empty() && !word.quoted) {
        arguments.push(OsString::from_vec(expanded));
    }
    Ok(())
}
