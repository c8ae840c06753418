//! What never enters a profile, by name. Deleted files, sockets and devices are kept out while recording.
//!
//! Two kinds of file are no use: those that hold something else at the next start (logs, journals, locks, temporary
//! and crash files, cache entries with random names), and those that are not on a drive at all. The rules are data;
//! paths are compared as bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// How a rule finds its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Everything beneath a folder, given as an absolute path.
    Beneath(&'static str),
    /// Everything beneath folders of these names that follow each other anywhere in the path.
    Within(&'static [&'static str]),
    /// Files whose name is this.
    Named(&'static str),
    /// Files whose name starts so.
    Starting(&'static str),
    /// Files whose name ends so.
    Ending(&'static str),
    /// Files whose name ends so, if a folder above is one in which programs keep their own data.
    EndingInAppData(&'static str),
    /// Files whose name is this followed by digits only.
    Numbered(&'static str),
}

/// A rule, and why it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What it finds.
    pub pattern: Pattern,
    /// Why these files do not help a start.
    pub reason: &'static str,
}

/// Folders in which programs, not people or packages, keep files: the XDG base folders, Flatpak's and Snap's, /var.
const APP_DATA: [&str; 6] = [".cache", ".config", ".local", ".var", "snap", "var"];

const NOT_ON_A_DRIVE: &str = "the kernel's or in memory: nothing to read from a drive";
const TEMPORARY: &str = "temporary: gone or another one at the next start";
const LOG: &str = "a log: it is written, and holds something else each time";
const SQLITE: &str = "SQLite's log of a running transaction: another one each time";
const LOCK: &str = "a lock: it says that a program runs, and holds nothing";
const CRASH: &str = "a crash report: written once, read by no start";
const WEB_CACHE: &str = "a cache of web content: its entries have random names and are replaced all the time";
const EDITOR: &str = "an editor's file beside the one being edited, gone when it is closed";
const DOWNLOAD: &str = "a download under way: renamed when it is complete";

const fn rule(pattern: Pattern, reason: &'static str) -> Rule {
    Rule { pattern, reason }
}

/// The rules. The first that fits gives the reason.
pub const RULES: &[Rule] = {
    use Pattern::{Beneath, Ending, EndingInAppData, Named, Numbered, Starting, Within};
    &[
        rule(Beneath("/proc"), NOT_ON_A_DRIVE),
        rule(Beneath("/sys"), NOT_ON_A_DRIVE),
        // Devices, and /dev/shm.
        rule(Beneath("/dev"), NOT_ON_A_DRIVE),
        // $XDG_RUNTIME_DIR is /run/user/UID.
        rule(Beneath("/run"), NOT_ON_A_DRIVE),
        rule(Beneath("/var/run"), NOT_ON_A_DRIVE),
        rule(Beneath("/tmp"), TEMPORARY),
        rule(Beneath("/var/tmp"), TEMPORARY),
        rule(Ending(".tmp"), TEMPORARY),
        // GLib writes a file under such a name, then renames it.
        rule(Starting(".goutputstream-"), TEMPORARY),
        rule(Beneath("/var/log"), LOG),
        rule(Ending(".journal"), LOG),
        rule(Ending(".journal~"), LOG),
        rule(EndingInAppData(".log"), LOG),
        rule(EndingInAppData(".log.old"), LOG),
        rule(EndingInAppData(".log.1"), LOG),
        // LevelDB's.
        rule(Named("LOG"), LOG),
        rule(Named("LOG.old"), LOG),
        rule(Named(".xsession-errors"), LOG),
        rule(Named(".xsession-errors.old"), LOG),
        rule(Ending("-wal"), SQLITE),
        rule(Ending("-shm"), SQLITE),
        rule(Ending("-journal"), SQLITE),
        rule(EndingInAppData(".lock"), LOCK),
        rule(EndingInAppData(".lck"), LOCK),
        // LevelDB; Firefox and Thunderbird; LibreOffice.
        rule(Named("LOCK"), LOCK),
        rule(Named(".parentlock"), LOCK),
        rule(Starting(".~lock."), LOCK),
        rule(Beneath("/var/crash"), CRASH),
        rule(Beneath("/var/lib/systemd/coredump"), CRASH),
        rule(Beneath("/var/lib/apport/coredump"), CRASH),
        rule(Within(&["Crash Reports"]), CRASH),
        rule(Within(&["Crashpad"]), CRASH),
        rule(Within(&["minidumps"]), CRASH),
        rule(Numbered("core."), CRASH),
        rule(Numbered("vgcore."), CRASH),
        // Firefox and Thunderbird.
        rule(Within(&["cache2", "entries"]), WEB_CACHE),
        rule(Within(&["cache2", "doomed"]), WEB_CACHE),
        // Chromium and everything built on it. Its compiled scripts ("Code Cache") recur, and help a start.
        rule(Within(&["Cache", "Cache_Data"]), WEB_CACHE),
        rule(Within(&["Service Worker", "CacheStorage"]), WEB_CACHE),
        rule(Within(&["blob_storage"]), WEB_CACHE),
        // WebKitGTK.
        rule(Within(&["WebKitCache"]), WEB_CACHE),
        rule(Ending(".swp"), EDITOR),
        rule(Starting(".#"), EDITOR),
        rule(Ending(".part"), DOWNLOAD),
        rule(Ending(".crdownload"), DOWNLOAD),
    ]
};

/// The rule that keeps a file out of profiles, if one does.
#[must_use]
pub fn excluded(path: &Path) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.pattern.matches(path))
}

impl Pattern {
    fn matches(self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().as_bytes();
        match self {
            Self::Beneath(folder) => path.starts_with(folder) && path != Path::new(folder),
            Self::Within(names) => folders(path).collect::<Vec<_>>().windows(names.len()).any(|w| w == names),
            Self::Named(whole) => name == whole.as_bytes(),
            Self::Starting(start) => name.starts_with(start.as_bytes()),
            Self::Ending(end) => ends(name, end),
            Self::EndingInAppData(end) => {
                ends(name, end) && folders(path).any(|f| APP_DATA.iter().any(|dir| f == *dir))
            }
            Self::Numbered(start) => name
                .strip_prefix(start.as_bytes())
                .is_some_and(|rest| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit)),
        }
    }
}

fn ends(name: &[u8], end: &str) -> bool {
    name.ends_with(end.as_bytes())
}

fn folders(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.parent().into_iter().flat_map(Path::iter)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A file for each rule, in the order of the rules.
    const KEPT_OUT: &[&str] = &[
        "/proc/1/maps",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/dev/shm/org.chromium.abc",
        "/run/user/1000/dconf/user",
        "/var/run/utmp",
        "/tmp/a/b",
        "/var/tmp/a",
        "/home/a/.config/app/settings.tmp",
        "/home/a/.local/share/.goutputstream-AB12C3",
        "/var/log/syslog",
        "/srv/log/user-1000.journal",
        "/srv/log/user-1000@0005.journal~",
        "/home/a/.config/Code/Local Storage/leveldb/000003.log",
        "/home/a/.config/Code/Local Storage/leveldb/main.log.old",
        "/home/a/.cache/app/app.log.1",
        "/home/a/.config/Code/Local Storage/leveldb/LOG",
        "/home/a/.config/Code/Local Storage/leveldb/LOG.old",
        "/home/a/.xsession-errors",
        "/home/a/.xsession-errors.old",
        "/home/a/.mozilla/firefox/x.default/places.sqlite-wal",
        "/home/a/.mozilla/firefox/x.default/places.sqlite-shm",
        "/home/a/.config/chromium/Default/History-journal",
        "/home/a/.config/libreoffice/4/.lock",
        "/home/a/.local/share/app/db.lck",
        "/home/a/.config/chromium/Default/Local Storage/leveldb/LOCK",
        "/home/a/.mozilla/firefox/x.default/.parentlock",
        "/home/a/Documents/.~lock.letter.odt#",
        "/var/crash/_usr_bin_x.1000.crash",
        "/var/lib/systemd/coredump/core.x.zst",
        "/var/lib/apport/coredump/core.x",
        "/home/a/.mozilla/firefox/Crash Reports/InstallTime2024",
        "/home/a/.config/chromium/Crashpad/settings.dat",
        "/home/a/.thunderbird/x.default/minidumps/1.dmp",
        "/home/a/core.4711",
        "/home/a/vgcore.4711",
        "/home/a/.cache/mozilla/firefox/x.default/cache2/entries/0A1B2C",
        "/home/a/.cache/mozilla/firefox/x.default/cache2/doomed/123",
        "/home/a/.config/Slack/Cache/Cache_Data/f_000123",
        "/home/a/.config/Slack/Service Worker/CacheStorage/ab/cd",
        "/home/a/.config/Slack/blob_storage/ab/0",
        "/home/a/.cache/epiphany/WebKitCache/Version 16/Records/AB/CD",
        "/home/a/.letter.txt.swp",
        "/home/a/.#letter.txt",
        "/home/a/Downloads/film.mkv.part",
        "/home/a/Downloads/film.mkv.crdownload",
    ];

    #[test]
    fn each_rule_keeps_out_what_it_is_for() {
        let mut tested = BTreeSet::new();
        for path in KEPT_OUT {
            let rule = excluded(Path::new(path));
            assert!(rule.is_some(), "{path} is let in");
            tested.extend(RULES.iter().position(|r| Some(r) == rule));
        }
        let untested: Vec<_> = (0..RULES.len()).filter(|i| !tested.contains(i)).map(|i| RULES[i]).collect();
        assert!(untested.is_empty(), "rules that no path needs: {untested:?}");
    }

    #[test]
    fn what_starts_need_is_let_in() {
        for path in [
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/usr/share/icons/hicolor/icon-theme.cache",
            "/home/a/.config/Slack/Code Cache/js/0123456789abcdef_0",
            "/home/a/.cache/mozilla/firefox/x.default/startupCache/startupCache.8.little",
            "/home/a/.config/dconf/user",
            "/home/a/.mozilla/firefox/x.default/places.sqlite",
            "/var/lib/flatpak/app/org.x/current/active/files/bin/x",
            "/home/a/project/Cargo.lock",
            "/home/a/notes.log",
            "/tmpfiles/a",
            "/opt/app/core",
            "/opt/app/core.js",
            "/opt/app/Singleton.js",
            "/var/lib/dpkg/status",
            "/var/cache/fontconfig/1.cache-9",
            "/runner/x",
        ] {
            assert_eq!(excluded(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn names_that_are_not_utf8_are_matched_all_the_same() {
        assert!(excluded(Path::new(OsStr::from_bytes(b"/home/\xff/.cache/\xfe.log"))).is_some());
        assert!(excluded(Path::new(OsStr::from_bytes(b"/usr/\xff"))).is_none());
    }
}
