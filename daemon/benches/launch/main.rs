//! Starts of real applications on simulated drives.

#[path = "../drive/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "tests use the rest")]
mod drive;

use anyhow::Context;
use drive::parameters::Kind;
use drive::{Drive, calibrate};

/// The drives' store in memory: an image file without content.
const CAPACITY: u64 = 6 << 30;

fn main() -> anyhow::Result<()> {
    for kind in Kind::ALL {
        let store = tempfile::tempfile_in("/dev/shm").context("no memory for the drive's store")?;
        store.set_len(CAPACITY)?;
        let drive = Drive::start(kind, store)?;
        println!("{kind}: {}; on the way {:?}", kind.describe(), drive.transport());
        for pattern in calibrate::PATTERNS {
            let check = calibrate::check(&drive, pattern)?;
            let verdict = if check.holds() { "holds" } else { "OUTSIDE TOLERANCE" };
            let percent = 100.0 * check.error();
            println!(
                "  {:<34} {:?} {:?} {percent:+.1} % {verdict}",
                check.pattern, check.expected, check.measured
            );
        }
    }
    Ok(())
}
