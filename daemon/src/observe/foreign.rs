//! Whether others kept the drive or the processor so busy that a launch's time tells nothing about the launch. Pure.

use headstart_shared::units::{Bytes, Nanos};

/// What the launch and the whole machine did while it went on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// How long it went on.
    pub span: Nanos,
    /// Processors of the machine.
    pub processors: u32,
    /// CPU time of the whole machine, idle time not among it.
    pub machine_cpu: Nanos,
    /// CPU time of the launch.
    pub own_cpu: Nanos,
    /// Bytes that the whole machine read from drives.
    pub machine_read: Bytes,
    /// Of these, what the launch had read.
    pub own_read: Bytes,
    /// Of these, what was read ahead for it.
    pub read_ahead: Bytes,
}

/// Others may read this much without being called heavy: a shell, a log, a mail client.
const READ: Bytes = Bytes(16 << 20);
/// And up to this share of what the launch needed.
const READ_SHARE: f64 = 0.5;
/// Others may use this share of all processors.
const CPU_SHARE: f64 = 0.5;

impl Load {
    /// Whether others did so much that the launch does not count.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.reads() || self.computes()
    }

    fn reads(&self) -> bool {
        let own = self.own_read + self.read_ahead;
        let foreign = self.machine_read - own;
        #[expect(clippy::cast_precision_loss, reason = "bytes read during a launch")]
        let allowed = (own.0 as f64 * READ_SHARE).max(READ.0 as f64);
        #[expect(clippy::cast_precision_loss, reason = "bytes read during a launch")]
        let foreign = foreign.0 as f64;
        foreign > allowed
    }

    fn computes(&self) -> bool {
        let foreign = (self.machine_cpu - self.own_cpu).as_secs_f64();
        foreign > self.span.as_secs_f64() * f64::from(self.processors.max(1)) * CPU_SHARE
    }
}

/// CPU time of the whole machine since boot, idle time and waiting not among it: the first line of `/proc/stat`.
#[must_use]
pub fn machine_cpu(stat: &str) -> Option<Nanos> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guests are part of user. proc(5).
    let busy = [0, 1, 2, 5, 6].into_iter().filter_map(|at| fields.get(at)).sum::<u64>();
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Some(Nanos(busy.saturating_mul(1_000_000_000 / per_second)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const MIB: u64 = 1 << 20;

    fn load() -> Load {
        Load {
            span: Nanos(2 * SECOND),
            processors: 2,
            machine_cpu: Nanos(2 * SECOND),
            own_cpu: Nanos(SECOND),
            machine_read: Bytes(110 * MIB),
            own_read: Bytes(20 * MIB),
            read_ahead: Bytes(80 * MIB),
        }
    }

    #[test]
    fn a_machine_that_does_little_else_is_no_foreign_load() {
        assert!(!load().is_foreign());
    }

    #[test]
    fn a_copy_beside_a_launch_is_and_what_is_read_ahead_for_it_is_not() {
        assert!(Load { machine_read: Bytes(160 * MIB), ..load() }.is_foreign());
        assert!(!Load { machine_read: Bytes(150 * MIB), ..load() }.is_foreign());
        let small = Load { own_read: Bytes(MIB), read_ahead: Bytes(0), ..load() };
        assert!(!Load { machine_read: Bytes(17 * MIB), ..small }.is_foreign());
        assert!(Load { machine_read: Bytes(18 * MIB), ..small }.is_foreign());
    }

    #[test]
    fn a_build_beside_a_launch_is_foreign_load() {
        assert!(!Load { machine_cpu: Nanos(3 * SECOND), ..load() }.is_foreign());
        assert!(Load { machine_cpu: Nanos(3 * SECOND + 1), ..load() }.is_foreign());
    }

    #[test]
    fn idle_time_and_waiting_are_no_work() {
        let ticks = rustix::param::clock_ticks_per_second();
        let text = format!("cpu  {ticks} 0 {ticks} 999999 888888 0 {ticks} 0 77 0\ncpu0 1 2 3\n");
        assert_eq!(machine_cpu(&text), Some(Nanos(3 * SECOND)));
        assert_eq!(machine_cpu("intr 5\n"), None);
    }
}
