//! Whether a window of the X server ends a start. Pure.

use super::Hints;
use super::outcome::Ownership;
use super::x11::Facts;

/// Windows up to this size are helpers: drag icons, system tray tests, leaders that happen to be mapped.
const TINY: (u16, u16) = (100, 60);

/// Whose process a window belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// One of the run.
    Run,
    /// One that was there before the start.
    Earlier,
    /// One that began since, but not of the run: started over the bus, say.
    Later,
    /// Not known.
    Unknown,
}

/// What a window means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The start is over.
    Counts(Ownership),
    /// It is the application's, of an instance that was there before.
    HandedOver,
    /// It is the run's, and not what the person waits for.
    Passed(&'static str),
    /// It has nothing to do with the run.
    Foreign,
}

pub(super) fn judge(facts: &Facts, owner: Owner, hints: &Hints) -> Verdict {
    let named = hints.matches(&facts.instance) || hints.matches(&facts.class);
    let of_run = match owner {
        Owner::Run => Some(Ownership::Process),
        Owner::Later | Owner::Unknown if named && !facts.existed => Some(Ownership::Class),
        _ => None,
    };
    match (of_run, why_not(facts)) {
        (Some(by), None) => Verdict::Counts(by),
        (Some(_), Some(why)) => Verdict::Passed(why),
        (None, None) if named && owner != Owner::Later => Verdict::HandedOver,
        (None, _) => Verdict::Foreign,
    }
}

/// Why a window is not what a person waits for.
fn why_not(facts: &Facts) -> Option<&'static str> {
    if facts.input_only {
        Some("a window that takes input only was passed over")
    } else if facts.splash {
        Some("a splash screen was passed over")
    } else if facts.override_redirect {
        Some("a window without a frame (override-redirect) was passed over")
    } else if facts.popup {
        Some("a menu, tooltip or notification was passed over")
    } else if facts.width <= TINY.0 && facts.height <= TINY.1 {
        Some("a tiny window was passed over")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts { id: 1, width: 640, height: 480, class: "Gedit".into(), ..Facts::default() }
    }

    fn hints() -> Hints {
        Hints::of(None, std::path::Path::new("/usr/bin/gedit"))
    }

    #[test]
    fn a_window_of_the_runs_processes_counts_whatever_its_class() {
        let odd = Facts { class: "Soffice".into(), ..facts() };
        assert_eq!(judge(&odd, Owner::Run, &hints()), Verdict::Counts(Ownership::Process));
    }

    #[test]
    fn a_new_window_of_the_class_counts_if_no_earlier_process_owns_it() {
        assert_eq!(judge(&facts(), Owner::Unknown, &hints()), Verdict::Counts(Ownership::Class));
        assert_eq!(judge(&facts(), Owner::Later, &hints()), Verdict::Counts(Ownership::Class));
        let other = Facts { class: "Xterm".into(), ..facts() };
        assert_eq!(judge(&other, Owner::Later, &hints()), Verdict::Foreign);
    }

    #[test]
    fn an_earlier_instance_that_shows_a_window_was_handed_over_to() {
        assert_eq!(judge(&facts(), Owner::Earlier, &hints()), Verdict::HandedOver);
        let raised = Facts { existed: true, ..facts() };
        assert_eq!(judge(&raised, Owner::Unknown, &hints()), Verdict::HandedOver);
        let other = Facts { class: "Xterm".into(), ..facts() };
        assert_eq!(judge(&other, Owner::Earlier, &hints()), Verdict::Foreign);
    }

    #[test]
    fn splash_screens_popups_and_helpers_are_passed_over() {
        let helpers = [
            Facts { splash: true, ..facts() },
            Facts { override_redirect: true, ..facts() },
            Facts { popup: true, ..facts() },
            Facts { input_only: true, ..facts() },
            Facts { width: 100, height: 60, ..facts() },
        ];
        for helper in helpers {
            assert!(matches!(judge(&helper, Owner::Run, &hints()), Verdict::Passed(_)), "{helper:?}");
        }
        let narrow = Facts { width: 101, height: 60, ..facts() };
        assert_eq!(judge(&narrow, Owner::Run, &hints()), Verdict::Counts(Ownership::Process));
    }
}
