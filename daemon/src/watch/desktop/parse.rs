//! The file format: groups of `key=value` lines, values with backslash escapes, keys marked with a language.
//!
//! Read as tolerantly as desktops do: a line that makes no sense loses itself, not the application. Bytes that are not
//! UTF-8 become replacement characters in names; an `Exec` with such bytes is therefore not usable.

use std::collections::HashMap;

/// The keys of the `[Desktop Entry]` group; a key with its language is `Name[de]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Group(HashMap<String, String>);

impl Group {
    /// Reads the group; `None` if there is none.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut lines = text.lines().map(str::trim_end);
        lines.find(|line| *line == "[Desktop Entry]")?;
        let mut keys = HashMap::new();
        for line in lines.take_while(|line| !line.starts_with('[')) {
            if let Some((key, value)) = line.split_once('=')
                && !line.starts_with('#')
            {
                // Of a key given twice the first counts.
                keys.entry(key.trim().to_owned()).or_insert_with(|| value.trim_start().to_owned());
            }
        }
        Some(Self(keys))
    }

    /// A value as it stands in the file.
    pub(super) fn raw(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// A value of type string, unescaped; `None` if it is missing, empty or escaped wrongly.
    pub(super) fn string(&self, key: &str) -> Option<String> {
        unescape(self.raw(key)?).filter(|value| !value.is_empty())
    }

    /// A value of type localestring, in the first of the languages that it is there in.
    pub(super) fn localised<'a>(&self, key: &str, tags: impl IntoIterator<Item = &'a str>) -> Option<String> {
        let localised = tags.into_iter().find_map(|tag| self.string(&format!("{key}[{tag}]")));
        localised.or_else(|| self.string(key))
    }

    /// A value of type boolean. `1` and `0` are what very old files have.
    pub(super) fn flag(&self, key: &str) -> bool {
        matches!(self.raw(key), Some("true" | "1"))
    }

    /// A value of type list of strings: separated by `;`, which may itself be escaped.
    pub(super) fn list(&self, key: &str) -> Vec<String> {
        let mut items = vec![String::new()];
        let mut chars = self.raw(key).unwrap_or_default().chars();
        while let Some(c) = chars.next() {
            match (c, items.last_mut()) {
                (';', _) => items.push(String::new()),
                ('\\', Some(item)) => match chars.next() {
                    Some(';') => item.push(';'),
                    Some(next) => item.extend(['\\', next]),
                    None => {}
                },
                (c, Some(item)) => item.push(c),
                (_, None) => {}
            }
        }
        items.iter().filter_map(|item| unescape(item)).filter(|item| !item.is_empty()).collect()
    }
}

/// `\s`, `\n`, `\t`, `\r`, `\\`; anything else behind a backslash, or nothing, is wrong.
pub(super) fn unescape(raw: &str) -> Option<String> {
    let mut value = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        value.push(match c {
            '\\' => match chars.next()? {
                's' => ' ',
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                '\\' => '\\',
                _ => return None,
            },
            c => c,
        });
    }
    Some(value)
}
