use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use super::dirs::application_dirs;
use super::exec::{ExecError, Fields, arguments};
use super::*;
use crate::watch::session::Environment;

/// Folders of desktop entries and programs that go with the test.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        tree.program("app");
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn entry(&self, dir: &str, file: &str, keys: &str) -> &Self {
        self.raw(dir, file.as_ref(), format!("[Desktop Entry]\nType=Application\n{keys}\n").as_bytes())
    }

    fn raw(&self, dir: &str, file: &OsStr, content: &[u8]) -> &Self {
        let path = self.path(dir).join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn program(&self, name: &str) -> &Self {
        let path = self.path("bin").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn load(&self) -> Catalogue {
        self.load_in(&Locale::default())
    }

    fn load_in(&self, locale: &Locale) -> Catalogue {
        let dirs = [self.path("home"), self.path("local"), self.path("system")];
        Catalogue::load(&dirs, locale, &[self.path("bin")])
    }
}

fn ids(catalogue: &Catalogue) -> Vec<&str> {
    catalogue.entries().map(|entry| entry.id.as_str()).collect()
}

#[test]
fn an_id_is_the_path_with_dashes_and_the_first_folder_wins() {
    let tree = Tree::new();
    tree.entry("system", "kde/kate.desktop", "Name=System Kate\nExec=app")
        .entry("home", "kde-kate.desktop", "Name=Own Kate\nExec=app")
        .entry("system", "other.desktop", "Name=Other\nExec=app")
        .raw("system", "notes.txt".as_ref(), b"not an entry");
    let catalogue = tree.load();
    assert_eq!(ids(&catalogue), ["kde-kate", "other"]);
    assert_eq!(catalogue.get("kde-kate").unwrap().name, "Own Kate");
}

#[test]
fn hidden_masks_and_no_display_does_not() {
    let tree = Tree::new();
    tree.entry("system", "gone.desktop", "Name=Gone\nExec=app")
        .entry("home", "gone.desktop", "Name=Gone\nExec=app\nHidden=true")
        .entry("home", "secret.desktop", "Name=Secret\nExec=app\nNoDisplay=true")
        .raw("home", "link.desktop".as_ref(), b"[Desktop Entry]\nType=Link\nName=A\nURL=x\n");
    let catalogue = tree.load();
    assert_eq!(ids(&catalogue), ["secret"]);
    let secret = catalogue.get("secret").unwrap();
    assert!(secret.no_display && !secret.shown_in(None));
}

#[test]
fn one_bad_file_hides_no_other_and_is_named() {
    let tree = Tree::new();
    tree.entry(
        "home",
        "good.desktop",
        "Name=Good\nExec=app\nComment=bad \\escape\nnonsense\nX[de]=no default",
    )
    .raw("home", "empty.desktop".as_ref(), b"")
    .raw("home", "noname.desktop".as_ref(), b"[Desktop Entry]\nExec=app\n")
    .raw("home", "bytes.desktop".as_ref(), b"[Desktop Entry]\nName=B\xff\nExec=app\n")
    .raw("home", &OsString::from_vec(b"n\xffm.desktop".to_vec()), b"[Desktop Entry]\nName=N\nExec=app\n");
    fs::create_dir(tree.path("home/folder.desktop")).unwrap();
    let catalogue = tree.load();
    assert_eq!(ids(&catalogue), ["bytes", "good", "n\\xffm"]);
    assert_eq!(catalogue.get("bytes").unwrap().name, "B\u{fffd}");
    let problems: Vec<String> = catalogue.problems().iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems.iter().any(|p| p.contains("empty.desktop") && p.contains("no [Desktop Entry] group")));
}

#[test]
fn what_is_no_file_or_without_end_is_not_read() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let tree = Tree::new();
    tree.entry("home", "good.desktop", "Name=Good\nExec=app");
    let path = |name: &str| tree.path(&format!("home/{name}.desktop"));
    mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    std::os::unix::fs::symlink("/dev/zero", path("zero")).unwrap();
    fs::File::create(path("huge")).unwrap().set_len(1 << 40).unwrap();
    let catalogue = tree.load();
    assert_eq!(ids(&catalogue), ["good"]);
    assert_eq!(catalogue.problems().len(), 3, "{:?}", catalogue.problems());
}

#[test]
fn the_first_group_alone_is_read_and_the_first_of_equal_keys() {
    let tree = Tree::new();
    let content =
        b"# comment\n[Other]\nName=Wrong\n[Desktop Entry]\r\nName = Right \r\nName=Second\nExec=app --a=b\n\
        [Desktop Action new]\nExec=other\n";
    tree.raw("home", "a.desktop".as_ref(), content);
    let catalogue = tree.load();
    let entry = catalogue.get("a").unwrap();
    assert_eq!((entry.name.as_str(), entry.exec.as_deref()), ("Right", Some("app --a=b")));
}

#[test]
fn names_are_looked_up_in_the_order_of_the_specification() {
    let keys = "Name=plain\nName[sr]=lang\nName[sr_YU]=country\nName[sr@Latn]=modifier\nExec=app";
    let tree = Tree::new();
    tree.entry("home", "a.desktop", keys);
    tree.entry("home", "b.desktop", &format!("{keys}\nName[sr_YU@Latn]=both"));
    let name = |id: &str, locale: &str| tree.load_in(&Locale::of([locale])).get(id).unwrap().name.clone();
    assert_eq!(name("b", "sr_YU.UTF-8@Latn"), "both");
    assert_eq!(name("a", "sr_YU@Latn"), "country");
    assert_eq!(name("a", "sr_RS@Latn"), "modifier");
    assert_eq!(name("a", "sr_RS.UTF-8"), "lang");
    assert_eq!(name("a", "de_DE"), "plain");
}

#[test]
fn the_language_is_that_of_the_environment() {
    let locale = |vars: &[(&str, &str)]| {
        let env: Environment = vars.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        Locale::from_env(&env).tags().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(locale(&[("LANG", "de_AT.UTF-8")]), "de_AT de");
    assert_eq!(locale(&[("LANG", "de_AT"), ("LC_MESSAGES", "fr_FR"), ("LC_ALL", "")]), "fr_FR fr");
    assert_eq!(locale(&[("LANG", "de_DE"), ("LANGUAGE", "pt_BR:de")]), "pt_BR pt de de_DE");
    assert_eq!(locale(&[("LANG", "C.UTF-8"), ("LANGUAGE", "de")]), "");
    assert_eq!(locale(&[]), "");
}

#[test]
fn the_folders_are_those_of_the_session_each_once_with_the_exports_it_lacks() {
    let env: Environment = [
        (
            "XDG_DATA_DIRS".into(),
            "/usr/share/:/opt/share:/usr/share:relative:/var/lib/flatpak/exports/share".into(),
        ),
        ("XDG_DATA_HOME".into(), "".into()),
    ]
    .into();
    let dirs = application_dirs(&env, Path::new("/home/ada"));
    let expected = [
        "/home/ada/.local/share",
        "/usr/share",
        "/opt/share",
        "/var/lib/flatpak/exports/share",
        "/home/ada/.local/share/flatpak/exports/share",
        "/var/lib/snapd/desktop",
    ];
    assert_eq!(dirs, expected.map(|dir| Path::new(dir).join("applications")));
    let dirs = application_dirs(&Environment::new(), Path::new("/home/ada"));
    assert_eq!(dirs[1..3], ["/usr/local/share/applications", "/usr/share/applications"].map(PathBuf::from));
}

#[test]
fn what_try_exec_misses_is_not_installed() {
    let tree = Tree::new();
    tree.entry("home", "there.desktop", "Name=There\nExec=app\nTryExec=app").entry(
        "home",
        "gone.desktop",
        "Name=Gone\nExec=app\nTryExec=/nonexistent/app",
    );
    let catalogue = tree.load();
    assert!(catalogue.get("there").unwrap().installed);
    let error = catalogue.find("gone").unwrap_err();
    assert_eq!(error, FindError::NotInstalled { id: "gone".into(), try_exec: "/nonexistent/app".into() });
}

#[test]
fn menus_of_a_desktop_go_by_its_names_in_order() {
    let tree = Tree::new();
    tree.entry("home", "only.desktop", "Name=A\nExec=app\nOnlyShowIn=GNOME;Unity;").entry(
        "home",
        "not.desktop",
        "Name=B\nExec=app\nNotShowIn=KDE;",
    );
    let catalogue = tree.load();
    let shown = |id: &str, desktop: &str| catalogue.get(id).unwrap().shown_in(Some(OsStr::new(desktop)));
    assert!(shown("only", "ubuntu:GNOME") && !shown("only", "KDE") && !shown("only", ""));
    assert!(shown("not", "GNOME") && !shown("not", "X:KDE") && shown("not", ""));
}

fn named() -> Tree {
    let tree = Tree::new();
    tree.program("soffice").program("calc");
    tree.entry(
        "system",
        "org.gnome.Calculator.desktop",
        "Name=Calculator\nName[de]=Taschenrechner\nExec=calc",
    )
    .entry("system", "libreoffice-writer.desktop", "Name=LibreOffice Writer\nExec=soffice --writer %U")
    .entry("system", "libreoffice-calc.desktop", "Name=LibreOffice Calc\nExec=soffice --calc %U")
    .entry("system", "helper.desktop", "Name=Helper\nExec=env A=b calc --hidden\nNoDisplay=true");
    tree
}

#[test]
fn an_application_is_found_by_id_last_part_name_or_program() {
    let catalogue = named().load_in(&Locale::of(["de_DE"]));
    let found = |name: &str| catalogue.find(name).unwrap().id.clone();
    for name in [
        "org.gnome.Calculator",
        "org.gnome.Calculator.desktop",
        "ORG.gnome.calculator",
        "calculator",
        "taschenrechner",
        "CALCULATOR",
        // A helper that menus do not show has the same program.
        "calc",
    ] {
        assert_eq!(found(name), "org.gnome.Calculator", "{name}");
    }
    assert_eq!(found("libreoffice writer"), "libreoffice-writer");
}

#[test]
fn what_fits_several_lists_them_and_what_fits_none_names_the_like() {
    let catalogue = named().load();
    let error = catalogue.find("soffice").unwrap_err();
    assert!(error.to_string().contains("libreoffice-calc, libreoffice-writer"), "{error}");
    let near = |name: &str| match catalogue.find(name).unwrap_err() {
        FindError::NotFound { near, .. } => near,
        other => panic!("{other}"),
    };
    assert_eq!(near("calculater")[0], "Calculator");
    assert!(near("libreoffice").contains(&"libreoffice-writer".to_owned()));
    assert_eq!(near("xyzzy"), [""; 0]);
}

#[test]
fn the_heaviest_known_application_that_can_be_started_is_suggested() {
    let tree = named();
    assert_eq!(tree.load().suggest().unwrap().id, "libreoffice-writer");
    // Neither what is missing, nor what runs in a terminal, nor settings of one desktop.
    let tree = Tree::new();
    tree.entry("home", "gimp.desktop", "Name=GIMP\nExec=missing-program %U")
        .entry("home", "vim.desktop", "Name=Vim\nExec=app\nTerminal=true\nCategories=TextEditor;")
        .entry("home", "panel.desktop", "Name=P\nExec=app\nCategories=Settings;")
        .entry("home", "hidden.desktop", "Name=H\nExec=app\nNoDisplay=true");
    assert_eq!(tree.load().suggest(), None);
    tree.entry("home", "zz.desktop", "Name=Z\nExec=app\nCategories=Utility;TextEditor;").entry(
        "home",
        "aa.desktop",
        "Name=A\nExec=app\nCategories=Game;",
    );
    assert_eq!(tree.load().suggest().unwrap().id, "zz");
}

#[test]
fn the_command_of_an_entry_is_unescaped_unquoted_and_expanded_in_this_order() {
    let tree = Tree::new();
    let exec = r#"Exec=app "two words" "\\$HOME \\"q\\"" %U --name=%c %k 100%% a\sb %i"#;
    tree.entry("home", "a.desktop", &format!("Name=Ä b\nIcon=ico n\n{exec}"))
        .entry("home", "bus.desktop", "Name=Bus\nDBusActivatable=true")
        .entry("home", "none.desktop", "Name=None")
        .entry("home", "bad.desktop", "Name=Bad\nExec=app %x");
    let catalogue = tree.load();
    let location = tree.path("home/a.desktop").to_str().unwrap().to_owned();
    let expected =
        ["app", "two words", "$HOME \"q\"", "--name=Ä b", &location, "100%", "a", "b", "--icon", "ico n"];
    assert_eq!(catalogue.get("a").unwrap().command().unwrap(), expected);
    let error = |id: &str| catalogue.get(id).unwrap().command().unwrap_err().to_string();
    assert!(error("bus").contains("D-Bus only"));
    assert!(error("none").contains("no usable Exec"));
    assert!(error("bad").contains("bad.desktop: Exec has the unknown field code %x"));
}

#[test]
fn the_program_is_seen_through_wrappers() {
    let tree = Tree::new();
    let program = |exec: &str| {
        tree.entry("home", "p.desktop", &format!("Name=P\nExec={exec}"));
        tree.load().get("p").unwrap().program().unwrap()
    };
    assert_eq!(program("/usr/bin/app %f"), "app");
    assert_eq!(program("env GTK_THEME=x LANG=C /opt/a/app"), "app");
    assert_eq!(
        program("/usr/bin/flatpak run --branch=stable --command=gedit org.gnome.gedit @@u %U @@"),
        "gedit"
    );
}

fn parse(exec: &str) -> Result<Vec<String>, ExecError> {
    let fields = Fields { icon: None, name: "name", location: OsStr::new("/place") };
    Ok(arguments(exec, fields)?.into_iter().map(|arg| arg.into_string().unwrap()).collect())
}

#[test]
fn exec_lines_as_they_are_found() {
    let good: [(&str, &[&str]); 10] = [
        ("a", &["a"]),
        ("  a   b  ", &["a", "b"]),
        (r#""a b" "" c"#, &["a b", "", "c"]),
        (r#"sh -c 'echo "x" \ y'"#, &["sh", "-c", r#"echo "x" \ y"#]),
        (r#"a "b\"\`\$\\\n""#, &["a", r#"b"`$\\n"#]),
        ("a %f %F %u %U %d %D %n %N %v %m b", &["a", "b"]),
        ("a --file=%f", &["a", "--file="]),
        ("a %i", &["a"]),
        ("a %%f %c", &["a", "%f", "name"]),
        (r"a b\ c", &["a", "b c"]),
    ];
    for (exec, expected) in good {
        assert_eq!(parse(exec).unwrap(), expected, "{exec}");
    }
    let bad = [
        ("", ExecError::Empty),
        ("   ", ExecError::Empty),
        ("%U", ExecError::Empty),
        ("\"\"", ExecError::Empty),
        ("a \"b", ExecError::Unterminated),
        ("a 'b", ExecError::Unterminated),
        ("a \\", ExecError::Unterminated),
        ("a %", ExecError::LonePercent),
        ("a %z", ExecError::UnknownField('z')),
        ("a x%i", ExecError::IconInArgument),
    ];
    for (exec, expected) in bad {
        assert_eq!(parse(exec), Err(expected), "{exec}");
    }
}

/// An argument as the specification wants it written.
fn quote(argument: &str) -> String {
    let mut quoted = String::from("\"");
    for c in argument.chars() {
        match c {
            '"' | '`' | '$' | '\\' => quoted.extend(['\\', c]),
            '%' => quoted.push_str("%%"),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

proptest! {
    #[test]
    fn any_line_is_parsed_or_refused_without_panic(exec in any::<String>()) {
        if let Ok(arguments) = parse(&exec) {
            prop_assert!(!arguments[0].is_empty());
        }
    }

    #[test]
    fn what_was_quoted_by_the_rules_comes_back(mut arguments in prop::collection::vec(any::<String>(), 1..6)) {
        if arguments[0].is_empty() {
            arguments[0].push('x');
        }
        let exec: Vec<String> = arguments.iter().map(|argument| quote(argument)).collect();
        prop_assert_eq!(parse(&exec.join(" ")).unwrap(), arguments);
    }

    #[test]
    fn field_codes_never_make_more_arguments_than_words(exec in "[a-z%fFuUck \"']{0,40}") {
        if let Ok(arguments) = parse(&exec) {
            prop_assert!(arguments.len() <= exec.split(' ').count());
        }
    }

    #[test]
    fn any_file_is_read_or_refused_without_panic(content in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut file = b"[Desktop Entry]\nName=A\nExec=app\n".to_vec();
        file.extend(content);
        let group = super::parse::Group::parse(&file).unwrap();
        prop_assert_eq!(group.string("Name").unwrap(), "A");
        group.list("Categories");
    }
}
