//! Units that must not be mixed up: bytes, pages and nanoseconds.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        /// Saturates at zero: a difference of counters read at two moments is never negative.
        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                iter.fold(Self(0), Add::add)
            }
        }
    };
}

unit! {
    /// A number of bytes. Shown in binary units (KiB, MiB, GiB), as the kernel counts memory.
    Bytes
}
unit! {
    /// A number of page-cache pages, of the size the kernel that counted them uses.
    Pages
}
unit! {
    /// A span of time in nanoseconds, or a moment as nanoseconds since the start of the run it belongs to.
    Nanos
}

impl Pages {
    /// The bytes in this many pages of `page_size` bytes.
    #[must_use]
    pub fn bytes(self, page_size: u64) -> Bytes {
        Bytes(self.0.saturating_mul(page_size))
    }
}

impl Nanos {
    /// Seconds as a floating-point number, for statistics and display.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "spans of years are exact to a microsecond")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<Duration> for Nanos {
    fn from(span: Duration) -> Self {
        Self(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(span: Nanos) -> Self {
        Self::from_nanos(span.0)
    }
}

impl fmt::Display for Bytes {
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const KIB: f64 = 1024.0;
        let bytes = self.0 as f64;
        let (value, unit) = match self.0 {
            0..1024 => return f.pad(&format!("{} B", self.0)),
            1024..0x10_0000 => (bytes / KIB, "KiB"),
            0x10_0000..0x4000_0000 => (bytes / KIB.powi(2), "MiB"),
            _ => (bytes / KIB.powi(3), "GiB"),
        };
        f.pad(&format!("{value:.1} {unit}"))
    }
}

impl fmt::Display for Nanos {
    /// Three significant figures or so: `0.123 s`, `1.23 s`, `12.3 s`, `123 s`; below 0.1 s in milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.as_secs_f64();
        let text = match s {
            s if s < 0.1 => format!("{:.1} ms", s * 1e3),
            s if s < 1.0 => format!("{s:.3} s"),
            s if s < 10.0 => format!("{s:.2} s"),
            s if s < 100.0 => format!("{s:.1} s"),
            s => format!("{s:.0} s"),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_binary_units() {
        let shown = [0, 1023, 1024, 1 << 20, 3 << 29, 1 << 40].map(|n| Bytes(n).to_string());
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.0 MiB", "1.5 GiB", "1024.0 GiB"]);
    }

    #[test]
    fn spans_are_shown_with_about_three_figures() {
        let shown = [4_200_000, 123_456_789, 1_234_567_890, 12_345_678_901, 123_456_789_012]
            .map(|n| Nanos(n).to_string());
        assert_eq!(shown, ["4.2 ms", "0.123 s", "1.23 s", "12.3 s", "123 s"]);
    }

    #[test]
    fn a_difference_never_wraps() {
        assert_eq!(Bytes(1) - Bytes(2), Bytes(0));
        assert_eq!(Nanos(u64::MAX) + Nanos(1), Nanos(u64::MAX));
    }
}
