//! The language that names are shown in, and how a localised key is chosen.

use std::ffi::OsStr;

use crate::watch::session::Environment;

/// A person's languages, the preferred first, in the forms in which keys may be marked with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locale {
    tags: Vec<String>,
}

impl Locale {
    /// The languages of an environment: the locale of `LC_ALL`, `LC_MESSAGES` or `LANG`, whichever is set first, behind
    /// what `LANGUAGE` prefers (which counts only in a locale other than `C`, as in gettext).
    #[must_use]
    pub fn from_env(env: &Environment) -> Self {
        let var = |name: &str| {
            env.get(OsStr::new(name)).and_then(|value| value.to_str()).filter(|value| !value.is_empty())
        };
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(var).unwrap_or("C");
        if matches!(locale.split(['.', '@']).next(), Some("C" | "POSIX")) {
            return Self::default();
        }
        let preferred = var("LANGUAGE").unwrap_or_default();
        Self::of(preferred.split(':').filter(|l| !l.is_empty()).chain([locale]))
    }

    /// These languages, as `lang_COUNTRY.ENCODING@MODIFIER` with all but the first part optional.
    pub fn of<'a>(locales: impl IntoIterator<Item = &'a str>) -> Self {
        let mut tags: Vec<String> = Vec::new();
        for tag in locales.into_iter().flat_map(forms) {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        Self { tags }
    }

    /// The forms in order of preference.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.tags.iter().map(String::as_str)
    }
}

/// `lang_COUNTRY@MODIFIER`, `lang_COUNTRY`, `lang@MODIFIER`, `lang`, as far as the parts are there.
fn forms(locale: &str) -> Vec<String> {
    let (rest, modifier) = match locale.split_once('@') {
        Some((rest, modifier)) => (rest, Some(modifier)),
        None => (locale, None),
    };
    let rest = rest.split('.').next().unwrap_or(rest);
    let (lang, country) = match rest.split_once('_') {
        Some((lang, country)) => (lang, Some(country)),
        None => (rest, None),
    };
    let form = |country: Option<&str>, modifier: Option<&str>| {
        let country = country.map(|c| format!("_{c}")).unwrap_or_default();
        let modifier = modifier.map(|m| format!("@{m}")).unwrap_or_default();
        format!("{lang}{country}{modifier}")
    };
    let mut forms = Vec::new();
    if country.is_some() && modifier.is_some() {
        forms.push(form(country, modifier));
    }
    if country.is_some() {
        forms.push(form(country, None));
    }
    if modifier.is_some() {
        forms.push(form(None, modifier));
    }
    forms.push(form(None, None));
    forms
}
