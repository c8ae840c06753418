//! What a shell command or a wrapper script executes in the end, where that is easily told. Pure.
//!
//! Understood are words with quotes, variables that were given a plain value before, and commands one after another.
//! What depends on anything else is not guessed: then the script itself is all that is known.

use std::collections::HashMap;
use std::ffi::OsString;

/// The last command that a script executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Last {
    words: Vec<String>,
    /// Whether the script becomes it (`exec`), or consists of nothing else.
    pub(super) certain: bool,
}

impl Last {
    /// The program and its arguments.
    pub(super) fn words(&self) -> Vec<OsString> {
        self.words.iter().map(OsString::from).collect()
    }
}

/// The last command that a script of a shell executes. `"$@"` and the like are left out, as they are what the caller
/// gives. `None` if it cannot be told.
#[must_use]
pub(super) fn last_command(script: &str) -> Option<Last> {
    let mut variables: HashMap<String, String> = HashMap::new();
    let mut last: Option<Vec<String>> = None;
    let mut executed: Option<Vec<String>> = None;
    let mut commands_seen = 0;
    for line in commands(script) {
        let Some(mut words) = words(&line, &variables) else {
            // A command that is not understood may be the last one.
            last = None;
            commands_seen += 1;
            continue;
        };
        while let Some((name, value)) = words.first().and_then(|word| assignment(word)) {
            variables.insert(name, value);
            words.remove(0);
        }
        match words.first().map(String::as_str) {
            Some("exec") if words.len() > 1 => {
                let command: Vec<String> = words.split_off(1);
                let start = command.iter().position(|word| assignment(word).is_none());
                executed = start.and_then(|start| command.get(start..).map(<[_]>::to_vec));
            }
            Some("export" | "readonly") => {
                variables.extend(words.iter().skip(1).filter_map(|word| assignment(word)));
            }
            None
            | Some("exit" | "fi" | "done" | "esac" | "}" | "set" | "cd" | "unset" | "shift" | ":" | "true") =>
                {}
            Some(_) => {
                commands_seen += 1;
                last = Some(words);
            }
        }
    }
    match executed {
        Some(words) => Some(Last { words, certain: true }),
        None => last.map(|words| Last { words, certain: commands_seen == 1 }),
    }
}

/// The lines of a script, split at `;`, `&&` and the like outside of quotes, without comments.
fn commands(script: &str) -> Vec<String> {
    let joined = script.replace("\\\n", " ");
    let mut found = vec![String::new()];
    let (mut quote, mut escaped, mut comment) = (None, false, false);
    for c in joined.chars() {
        let Some(line) = found.last_mut() else { break };
        if comment && c != '\n' {
            continue;
        }
        comment = false;
        let in_single = quote == Some('\'');
        match c {
            _ if escaped => escaped = false,
            '\\' if !in_single => escaped = true,
            '\'' | '"' if quote == Some(c) => quote = None,
            '\'' | '"' if quote.is_none() => quote = Some(c),
            '\n' | ';' | '&' | '|' if quote.is_none() => {
                found.push(String::new());
                continue;
            }
            '#' if quote.is_none() && line.ends_with([' ', '\t']) | line.is_empty() => {
                comment = true;
                continue;
            }
            _ => {}
        }
        line.push(c);
    }
    found
}

/// The words of a command; `None` if one of them cannot be told.
fn words(line: &str, variables: &HashMap<String, String>) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\r' if quote.is_none() => words.extend(word.take()),
            '\'' | '"' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            c if quote == Some(c) => quote = None,
            '\\' if quote != Some('\'') => word.get_or_insert_default().push(chars.next()?),
            '$' if quote != Some('\'') => match variable(&mut chars)?.as_str() {
                // What the caller gives.
                "@" | "*" => {
                    word.take_if(|word| word.is_empty());
                }
                name => word.get_or_insert_default().push_str(variables.get(name)?),
            },
            '`' | '(' | ')' | '<' | '>' if quote != Some('\'') => return None,
            '{' | '[' if quote.is_none() && word.is_none() => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// The name of a variable, behind its `$`. Only plain ones and `${@…}`-like forms that stand for the arguments.
fn variable(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let first = chars.next()?;
    if first == '@' || first == '*' {
        return Some(first.to_string());
    }
    let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    if first == '{' {
        let inside: String = chars.by_ref().take_while(|c| *c != '}').collect();
        let of_arguments = inside.starts_with("1+") || inside.starts_with("1:+") || inside == "@";
        return if of_arguments {
            Some("@".to_owned())
        } else {
            (!inside.is_empty() && inside.chars().all(|c| is_name(&c))).then_some(inside)
        };
    }
    if !is_name(&first) {
        return None;
    }
    let mut name = first.to_string();
    while let Some(c) = chars.next_if(is_name) {
        name.push(c);
    }
    Some(name)
}

fn assignment(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (plain && !name.starts_with(|c: char| c.is_ascii_digit())).then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
#[path = "shell_tests.rs"]
mod tests;
