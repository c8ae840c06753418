//! Telling systemd that all is well, as long as it is.
//!
//! The bus half is alive if it comes to tell at all, since it does so itself; the launches are if they said so lately.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The launches say that they go on every 10 s; one missed moment is no death.
const SILENCE: Duration = Duration::from_secs(30);

/// When the launches were last alive.
#[derive(Debug)]
pub(crate) struct Alive {
    began: Instant,
    last: AtomicU64,
}

impl Alive {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), last: AtomicU64::new(0) }
    }

    /// They are now.
    pub(crate) fn now(&self) {
        self.last.store(self.millis(), Ordering::Relaxed);
    }

    /// Whether they were lately.
    pub(crate) fn lately(&self) -> bool {
        let silent = self.millis().saturating_sub(self.last.load(Ordering::Relaxed));
        u128::from(silent) < SILENCE.as_millis()
    }

    fn millis(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// How often systemd is to be told, if it wants to be: a third of its patience.
pub(crate) fn interval() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|patience| patience / 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launches_are_alive_until_they_are_silent_for_long() {
        let alive =
            Alive { began: Instant::now().checked_sub(SILENCE * 2).unwrap(), last: AtomicU64::new(0) };
        assert!(!alive.lately());
        alive.now();
        assert!(alive.lately());
        assert!(Alive::new().lately());
    }
}
