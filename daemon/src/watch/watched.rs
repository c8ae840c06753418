//! A value that threads wait on.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A value that threads wait on.
#[derive(Default)]
pub(super) struct Watched<T> {
    value: Mutex<T>,
    pub(super) changed: Condvar,
}

impl<T> Watched<T> {
    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done`, at most for `timeout`; whether it is.
    pub(super) fn wait(&self, timeout: Duration, done: impl Fn(&T) -> bool) -> bool {
        let guard = self.lock();
        let waited = self.changed.wait_timeout_while(guard, timeout, |value| !done(value));
        let (guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        done(&guard)
    }
}
