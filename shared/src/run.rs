//! A run: one observed start of an app, of the machine, or of a command.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a person starts: a desktop-file ID (`org.gnome.gedit.desktop` without its suffix), or for a command its
/// resolved path. Paths that are not UTF-8 are escaped (`\xff`), so an ID can always be shown and typed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AppId(pub String);

impl fmt::Display for AppId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The moment at which a start counts as over. Figures of different milestones are never mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Milestone {
    /// The first window of the run's processes was mapped.
    FirstWindow,
    /// The command ended.
    Exit,
    /// No new pages, disk and CPU quiet.
    Settled,
}

impl fmt::Display for Milestone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::FirstWindow => "first window",
            Self::Exit => "exit",
            Self::Settled => "settled",
        })
    }
}

/// What was done before and at one start of a comparison.
///
/// In the terms of daily use: `Cold` is a cold, held-out run, `Prefetched` a cold, prefetched one, and `Warm` has
/// everything cached and nothing to prefetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Caches emptied, nothing read ahead.
    Cold,
    /// Caches emptied, then read ahead from the moment of the start.
    Prefetched,
    /// Everything the start needs is in memory.
    Warm,
}

impl Condition {
    /// All three, in the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Cold, Self::Prefetched, Self::Warm];
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Cold => "cold",
            Self::Prefetched => "cold, prefetched",
            Self::Warm => "warm",
        })
    }
}

/// How the caches were emptied before a cold start. No way is a true cold start but a boot: in 2007 dropping the
/// caches understated one by 3 s of 14, because what the session itself had read stayed in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColdMethod {
    /// `sync`, then only the files of this run and the directories they are in, as far as the kernel lets us.
    Evict,
    /// `sync`, then the page cache, dentries and inodes of the whole machine (`/proc/sys/vm/drop_caches`).
    Drop,
    /// The first start since the machine booted: nothing had to be emptied.
    Boot,
}

impl fmt::Display for ColdMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Evict => "evict",
            Self::Drop => "drop",
            Self::Boot => "first start after boot",
        })
    }
}
