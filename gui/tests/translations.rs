//! Translations: every sentence of the sources is in the template, nothing else is, and every language has all of it.
//!
//! Sentences are found by lexing Rust as the compiler does (lifetimes, raw strings, line continuations and macros
//! included, which xgettext's C parser loses) and looking for calls of `gettext`, `ngettext`, `pgettext`, and of
//! `Labels::text` and `Labels::plural`, with literals. `po/update` runs this test with `HEADSTART_UPDATE_POT` set to the
//! file into which the sentences of the sources are to be written.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A sentence: context, singular, plural.
type Key = (Option<String>, String, Option<String>);

#[derive(Default)]
struct Found {
    places: Vec<String>,
    comments: BTreeSet<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn sources() -> Vec<PathBuf> {
    let mut folders = vec![root().join("gui/src"), root().join("shared/src")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn messages() -> BTreeMap<Key, Found> {
    let mut found = BTreeMap::new();
    for path in sources() {
        let source = fs::read_to_string(&path).unwrap();
        let file = path.strip_prefix(root()).unwrap().display().to_string();
        let tokens: TokenStream = source.parse().unwrap_or_else(|e| panic!("{file}: {e}"));
        collect(tokens, &file, &source.lines().collect::<Vec<_>>(), &mut found);
    }
    found
}

fn collect(tokens: TokenStream, file: &str, lines: &[&str], found: &mut BTreeMap<Key, Found>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        collect(group.stream(), file, lines, found);
        let Some(TokenTree::Ident(called)) = at.checked_sub(1).and_then(|at| tokens.get(at)) else {
            continue;
        };
        let method = matches!(at.checked_sub(2).and_then(|at| tokens.get(at)), Some(TokenTree::Punct(p)) if p.as_char() == '.');
        if let Some(key) = key(&called.to_string(), method, group) {
            let line = called.span().start().line;
            let entry = found.entry(key).or_default();
            entry.places.push(format!("{file}:{line}"));
            entry.comments.extend(comment(lines, line));
        }
    }
}

/// The sentence of a call, if its arguments are literals.
fn key(called: &str, method: bool, group: &Group) -> Option<Key> {
    if group.delimiter() != Delimiter::Parenthesis {
        return None;
    }
    let literals = literals(group);
    let nth = |n: usize| literals.get(n).cloned().flatten();
    match (called, method) {
        ("gettext", false) | ("text", true) => Some((None, nth(0)?, None)),
        ("ngettext", false) | ("plural", true) => Some((None, nth(0)?, Some(nth(1)?))),
        ("pgettext", false) => Some((Some(nth(0)?), nth(1)?, None)),
        _ => None,
    }
}

/// The arguments of a call: strings where they are string literals.
fn literals(group: &Group) -> Vec<Option<String>> {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let arguments = tokens.split(|token| matches!(token, TokenTree::Punct(p) if p.as_char() == ','));
    let literal = |argument: &[TokenTree]| match argument {
        [TokenTree::Literal(literal)] => {
            syn::parse_str::<syn::LitStr>(&literal.to_string()).ok().map(|literal| literal.value())
        }
        _ => None,
    };
    arguments.map(literal).collect()
}

/// A remark for translators above a call.
fn comment(lines: &[&str], line: usize) -> Option<String> {
    let above = lines[..line - 1].iter().rev().take(2);
    { above }.find_map(|line| line.trim().strip_prefix("// Translators: ")).map(str::to_owned)
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    format!("\"{escaped}\"")
}

fn template(messages: &BTreeMap<Key, Found>) -> String {
    let mut pot = String::from(
        "msgid \"\"\nmsgstr \"\"\n\"Content-Type: text/plain; charset=UTF-8\\n\"\n\"Content-Transfer-Encoding: 8bit\\n\"\n",
    );
    for ((context, one, many), found) in messages {
        pot.push('\n');
        for comment in &found.comments {
            writeln!(pot, "#. Translators: {comment}").unwrap();
        }
        for place in &found.places {
            writeln!(pot, "#: {place}").unwrap();
        }
        if let Some(context) = context {
            writeln!(pot, "msgctxt {}", quoted(context)).unwrap();
        }
        writeln!(pot, "msgid {}", quoted(one)).unwrap();
        match many {
            Some(many) => {
                writeln!(pot, "msgid_plural {}\nmsgstr[0] \"\"\nmsgstr[1] \"\"", quoted(many)).unwrap();
            }
            None => pot.push_str("msgstr \"\"\n"),
        }
    }
    pot
}

/// One entry of a .po file.
#[derive(Default)]
struct Entry {
    places: Vec<String>,
    fields: BTreeMap<String, String>,
}

/// Reads a .po file that msgfmt has already found to be well formed.
fn entries(path: &Path) -> Vec<Entry> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let blocks = text.split("\n\n").filter(|block| block.contains("msgid "));
    let read = |block: &str| {
        let (mut entry, mut field) = (Entry::default(), String::new());
        for line in block.lines().filter(|line| !line.starts_with("#~")) {
            if let Some(places) = line.strip_prefix("#: ") {
                entry.places.extend(places.split(' ').map(str::to_owned));
            } else if let Some((name, _)) = line.split_once(" \"").filter(|_| line.starts_with("msg")) {
                name.clone_into(&mut field);
            }
            if let (Some(open), false) = (line.find('"'), line.starts_with('#')) {
                let literal: syn::LitStr = syn::parse_str(&line[open..]).unwrap();
                entry.fields.entry(field.clone()).or_default().push_str(&literal.value());
            }
        }
        entry
    };
    blocks.map(read).filter(|entry| entry.fields.get("msgid").is_some_and(|id| !id.is_empty())).collect()
}

fn key_of(entry: &Entry) -> Key {
    let field = |name: &str| entry.fields.get(name).cloned();
    (field("msgctxt"), field("msgid").unwrap(), field("msgid_plural"))
}

#[test]
fn the_template_has_every_sentence_of_the_sources_and_no_other() {
    let messages = messages();
    if let Some(path) = std::env::var_os("HEADSTART_UPDATE_POT") {
        fs::write(path, template(&messages)).unwrap();
        return;
    }
    let entries = entries(&root().join("po/headstart.pot"));
    let from_rust = |entry: &&Entry| entry.places.iter().any(|place| place.contains(".rs:"));
    let listed: BTreeSet<Key> = entries.iter().filter(from_rust).map(key_of).collect();
    let used: BTreeSet<Key> = messages.into_keys().collect();
    let missing: Vec<_> = used.difference(&listed).collect();
    let obsolete: Vec<_> = listed.difference(&used).collect();
    assert!(
        missing.is_empty() && obsolete.is_empty(),
        "run po/update. Missing: {missing:#?}, gone: {obsolete:#?}"
    );
    assert!(used.len() > 100, "only {} sentences were found: the search is broken", used.len());
}

#[test]
fn the_search_finds_what_other_tools_lose() {
    let source = r#"
        fn f<'a>(x: &'a str) {
            view! { set_label: &gettext("in a macro"), }
            let path = r"C:\"; gettext("after a raw string");
            gettext("a line \
                     continued"); gettext("\u{2212}1");
            labels.plural("one", "{n} many", n); pgettext("context", "id"); other.gettexts("no"); gettext(variable);
        }"#;
    let mut found = BTreeMap::new();
    collect(source.parse().unwrap(), "x.rs", &source.lines().collect::<Vec<_>>(), &mut found);
    let ids: Vec<String> = found.keys().map(|(_, id, _)| id.clone()).collect();
    assert_eq!(ids, ["a line continued", "after a raw string", "in a macro", "one", "\u{2212}1", "id"]);
}

fn gaps(text: &str) -> BTreeSet<&str> {
    text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).collect()
}

#[test]
fn every_language_is_complete_and_keeps_the_gaps() {
    let linguas = fs::read_to_string(root().join("po/LINGUAS")).unwrap();
    let template: BTreeSet<Key> = entries(&root().join("po/headstart.pot")).iter().map(key_of).collect();
    for language in linguas.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let path = root().join(format!("po/{language}.po"));
        let mut check = Command::new("msgfmt");
        check.args(["--check", "--statistics", "-o", "/dev/null"]).arg(&path).env("LC_ALL", "C");
        let output = check.output().expect("msgfmt of gettext is needed");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{language}: {said}");
        assert!(
            !said.contains("fuzzy") && !said.contains("untranslated"),
            "{language} is not complete: {said}"
        );
        let entries = entries(&path);
        let translated: BTreeSet<Key> = entries.iter().map(key_of).collect();
        assert!(template.is_subset(&translated), "{language} lacks sentences: run po/update");
        for entry in &entries {
            let all = entry.fields.get("msgid_plural").unwrap_or(&entry.fields["msgid"]);
            for (field, text) in entry.fields.iter().filter(|(field, _)| field.starts_with("msgstr")) {
                // A form for one or two may leave the number out, never anything else, and may invent nothing.
                let (wanted, got) = (gaps(all), gaps(text));
                let lost: Vec<_> = wanted.difference(&got).filter(|gap| !is_number(field, gap)).collect();
                assert!(lost.is_empty(), "{language}: {field} of {all:?} loses {lost:?}");
                assert!(got.is_subset(&wanted), "{language}: {field} of {all:?} invents a gap");
            }
        }
    }
}

/// What a form for a certain number may leave out.
fn is_number(field: &str, gap: &str) -> bool {
    field.starts_with("msgstr[")
        && ["count", "files", "lost", "kind", "range", "runs", "complete"].contains(&gap)
}

#[test]
fn desktop_file_and_metainfo_are_valid() {
    let data = root().join("data");
    let id = "io.github.headstart_desktop.Headstart";
    for (program, arguments, file) in [
        ("desktop-file-validate", &[][..], format!("{id}.desktop")),
        ("appstreamcli", &["validate", "--no-net"], format!("{id}.metainfo.xml")),
    ] {
        match Command::new(program).args(arguments).arg(data.join(&file)).output() {
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stdout).into_owned();
                assert!(output.status.success(), "{file}: {said}{}", String::from_utf8_lossy(&output.stderr));
            }
            Err(_) if std::env::var_os("HEADSTART_REQUIRE_ROOT_TESTS").is_none() => {
                eprintln!("SKIPPED: {program} is not installed");
            }
            Err(error) => panic!("{program}: {error}"),
        }
    }
}
