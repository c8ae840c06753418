//! On the real kernel: file systems in image files, evicted, replayed, and looked at with the kernel's own eyes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use headstart_shared::units::{Bytes, Nanos};

use super::*;
use crate::drive::{Class, Flash};
use crate::opening::{Refusal, identity_of};
use crate::plan::{Need, Target, Tuning, Wanted, WantedDevice, WantedFile, locate};
use crate::recording::{DeviceNumber, PageRange};
use crate::sys::ioprio::IoPriority;
use crate::sys::loop_images::{LoopImage, own_mounts, private_mounts, run, skip};
use crate::sys::readahead::evict;
use crate::sys::residency::{cached_pages, page_size, resident_in};

fn pages(start: u64, end: u64) -> PageRange {
    PageRange { start, end }
}

fn wanted_file(path: &Path, ranges: &[PageRange]) -> WantedFile {
    WantedFile {
        path: path.into(),
        identity: identity_of(File::open(path).unwrap()).unwrap(),
        ranges: (0..).zip(ranges).map(|(n, &pages)| Need { pages, at: Nanos(n * 1_000_000) }).collect(),
        first_need: Nanos(0),
        extents: Vec::new(),
    }
}

fn target(class: Class) -> Target {
    Target { name: "test".into(), class, max_readahead: Bytes(128 << 10) }
}

/// Plans of the kinds that differ, none of them bridging holes, so that what is resident can be compared exactly.
fn tunings() -> Vec<(Target, Tuning)> {
    [Class::Spinning, Class::Flash(Flash::Emmc), Class::Flash(Flash::Nvme)]
        .into_iter()
        .map(|class| {
            let tuning = Tuning::for_target(&target(class));
            (target(class), Tuning { bridge: Bytes(0), metadata_bridge: Bytes(0), ..tuning })
        })
        .collect()
}

fn plan(wanted: &Wanted, (target, tuning): (Target, Tuning)) -> Plan {
    Plan::new(wanted, page_size(), target, tuning, Bytes(1 << 40))
}

fn replay_with(plan: Plan, options: Options) -> Account {
    let gate = Gate::new().unwrap();
    let replay = Replay::prepare(vec![plan], &own_mounts(), &gate, options).unwrap();
    gate.open();
    replay.finish()
}

fn replay(plan: Plan) -> Account {
    replay_with(plan, Options::default())
}

fn evict_all(wanted: &Wanted) {
    for file in &wanted.files {
        let open = File::open(&file.path).unwrap();
        open.sync_all().unwrap();
        evict(&open).unwrap();
        assert_eq!(resident_in(&open).unwrap(), [], "{} could not be evicted", file.path.display());
    }
}

fn resident(path: &Path) -> Vec<PageRange> {
    resident_in(&File::open(path).unwrap()).unwrap()
}

/// Replays as every class of drive would be, and has the kernel confirm that what was planned is resident, and nothing
/// else.
fn check_exact(wanted: &mut Wanted) {
    assert_eq!(locate::locate(wanted, &Roots::default(), &own_mounts()), []);
    for kind in tunings() {
        evict_all(wanted);
        let account = replay(plan(wanted, kind.clone()));
        let mut total = 0;
        for file in &wanted.files {
            let planned: Vec<PageRange> = file.ranges.iter().map(|need| need.pages).collect();
            assert_eq!(resident(&file.path), planned, "{} {:?}", file.path.display(), kind.0.class);
            total += planned.iter().map(|range| range.len()).sum::<u64>() * page_size();
        }
        assert_eq!(account.skipped, []);
        assert_eq!(account.remarks, [""; 0]);
        assert_eq!((account.data.requested, account.data.brought_in()), (Bytes(total), Bytes(total)));
        assert_eq!((account.files_opened, account.stopped), (wanted.files.len() as u64, None));
        assert!(account.time.unwrap() > Nanos(0) && account.cpu > Nanos(0));

        let again = replay(plan(wanted, kind));
        assert_eq!((again.data.already_cached, again.data.brought_in()), (Bytes(total), Bytes(0)));
    }
}

/// Files with ranges of all sorts: beginning, end with a partial page, one page, longer than a request.
fn sample(folder: &Path, file: impl Fn(&Path, usize) -> PathBuf) -> Wanted {
    let page = usize::try_from(page_size()).unwrap();
    let ranges = [pages(0, 3), pages(10, 11), pages(100, 190), pages(255, 257)];
    let files = (0..6_usize).map(|n| {
        let path = file(&folder.join(format!("file {n}")), 256 * page + 1 + n);
        wanted_file(&path, &ranges[n % 3..])
    });
    Wanted { files: files.collect(), devices: Vec::new() }
}

#[test]
fn exactly_what_is_planned_becomes_resident() {
    for fs_type in ["ext4", "xfs", "btrfs"] {
        let Some(image) = LoopImage::new(fs_type, 320) else { return };
        let folder = image.join("some folder");
        fs::create_dir(&folder).unwrap();
        check_exact(&mut sample(&folder, |path, size| image.file(path, size)));
    }
}

#[test]
fn a_subvolume_is_replayed() {
    let Some(image) = LoopImage::new("btrfs", 320) else { return };
    let volume = image.join("volume");
    if !run("btrfs", &["-q", "subvolume", "create", volume.to_str().unwrap()]) {
        return;
    }
    check_exact(&mut sample(&volume, |path, size| image.file(path, size)));
}

#[test]
fn an_overlay_is_replayed_from_both_its_layers() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(image.join(name)).unwrap();
    }
    let wanted = sample(&image.join("lower"), |path, size| image.file(path, size));
    fs::rename(image.join("lower/file 1"), image.join("upper/file 1")).unwrap();
    let layers = format!(
        "lowerdir={},upperdir={},workdir={}",
        image.join("lower").display(),
        image.join("upper").display(),
        image.join("work").display()
    );
    let merged = image.join("merged");
    if !run("mount", &["-t", "overlay", "overlay", "-o", &layers, merged.to_str().unwrap()]) {
        return;
    }
    let files = wanted.files.into_iter().map(|file| {
        let ranges: Vec<PageRange> = file.ranges.iter().map(|need| need.pages).collect();
        wanted_file(&merged.join(file.path.file_name().unwrap()), &ranges)
    });
    let mut wanted = Wanted { files: files.collect(), devices: Vec::new() };
    check_exact(&mut wanted);
    run("umount", &["-l", merged.to_str().unwrap()]);
}

/// The pages of a device that hold a folder's blocks and the inodes in it.
fn metadata_of(image: &LoopImage) -> Option<(DeviceNumber, File)> {
    let mounts = own_mounts();
    let mount = mounts.at(&image.path()).unwrap();
    let node = Path::new("/dev").join(Path::new(&mount.source).file_name()?);
    Some((mount.device, File::open(node).ok()?))
}

#[test]
fn structures_are_read_from_the_device() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let (device, node) = metadata_of(&image).unwrap();
    let filesystem = identity_of(File::open(image.path()).unwrap()).unwrap().filesystem;
    let far = pages(8000, 8003);
    evict(&node).unwrap();
    let before = cached_pages(&node, far).unwrap().cached;
    assert_eq!(before, 0);
    let ranges = vec![Need { pages: far, at: Nanos(0) }];
    let wanted = |device, filesystem| Wanted {
        files: vec![],
        devices: vec![WantedDevice { device, filesystem, base: 0, ranges: ranges.clone() }],
    };
    let kind = tunings().remove(0);
    // Another file system on that device: nothing is read, and it is said.
    let refused = replay(plan(&wanted(device, filesystem ^ 1), kind.clone()));
    assert_eq!(refused.metadata, Traffic::default());
    assert!(refused.remarks[0].contains("not mounted"), "{:?}", refused.remarks);
    assert_eq!(cached_pages(&node, far).unwrap().cached, 0);

    // The device has been given another number since: the file system is still found.
    for number in [device, DeviceNumber { major: 8, minor: 77 }] {
        evict(&node).unwrap();
        let account = replay(plan(&wanted(number, filesystem), kind.clone()));
        assert_eq!(account.remarks, [""; 0]);
        assert_eq!(account.metadata.brought_in(), Bytes(3 * page_size()));
        assert_eq!(account.data, Traffic::default());
        assert_eq!(cached_pages(&node, far).unwrap().cached, 3);
        assert_eq!(cached_pages(&node, pages(8003, 8100)).unwrap().cached, 0);
    }
}

#[test]
fn what_took_a_files_place_is_neither_read_nor_waited_for() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let names =
        ["same", "fifo", "device", "link", "folder", "gone", "short", "touched", "other", "linked folder/x"];
    fs::create_dir(image.join("linked folder")).unwrap();
    let ranges = [pages(0, 4)];
    let files = names.map(|name| wanted_file(&image.file(name, 1 << 16), &ranges));
    let wanted = Wanted { files: files.into(), devices: Vec::new() };
    evict_all(&wanted);
    for name in ["fifo", "device", "link", "folder", "gone", "other"] {
        fs::rename(image.join(name), image.join(format!("{name} before"))).unwrap();
    }
    fs::rename(image.join("linked folder"), image.join("real folder")).unwrap();
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    run("mkfifo", &[&text(image.join("fifo"))]);
    // A tape, a watchdog: opening some devices is an act. This one would answer with an error.
    run("mknod", &[&text(image.join("device")), "c", "10", "130"]);
    symlink(image.join("link before"), image.join("link")).unwrap();
    symlink(image.join("real folder"), image.join("linked folder")).unwrap();
    fs::create_dir(image.join("folder")).unwrap();
    File::options().write(true).open(image.join("short")).unwrap().set_len(100).unwrap();
    let touched = File::options().write(true).open(image.join("touched")).unwrap();
    touched.set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(9)).unwrap();
    fs::copy(image.join("other before"), image.join("other")).unwrap();
    let other = File::open(image.join("other")).unwrap();
    other.sync_all().unwrap();
    evict(&other).unwrap();
    evict(File::open(image.join("other before")).unwrap()).unwrap();

    let account = replay(plan(&wanted, tunings().remove(1)));
    let mut why: BTreeMap<String, Refusal> = BTreeMap::new();
    for skipped in account.skipped {
        let name = skipped.path.strip_prefix(image.path()).unwrap().to_str().unwrap().to_owned();
        assert_eq!(why.insert(name, skipped.why), None, "said once");
    }
    let expected = [
        ("fifo", Refusal::NotRegular),
        ("device", Refusal::NotRegular),
        ("link", Refusal::Link),
        ("folder", Refusal::NotRegular),
        ("gone", Refusal::Missing),
        ("short", Refusal::Changed),
        ("touched", Refusal::Changed),
        ("other", Refusal::Changed),
        ("linked folder/x", Refusal::Link),
    ];
    assert_eq!(why, expected.map(|(name, why)| (name.to_owned(), why)).into());
    assert_eq!(account.data.requested, Bytes(4 * page_size()));
    assert_eq!(account.files_opened, 1);
    assert_eq!(resident(&image.join("same")), ranges);
    for name in ["other", "other before", "link before", "touched", "real folder/x"] {
        assert_eq!(resident(&image.join(name)), [], "{name}");
    }
}

#[test]
fn a_user_gets_read_ahead_only_what_that_user_may_read() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    fs::set_permissions(image.path().parent().unwrap(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let ranges = [pages(0, 4)];
    let file = |name: &str, mode| {
        let path = image.file(name, 1 << 15);
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        wanted_file(&path, &ranges)
    };
    fs::create_dir(image.join("closed")).unwrap();
    let files = vec![file("public", 0o644), file("private", 0o600), file("closed/public", 0o644)];
    fs::set_permissions(image.join("closed"), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let wanted = Wanted { files, devices: Vec::new() };
    evict_all(&wanted);
    let accessed = || fs::metadata(image.join("public")).unwrap().accessed().unwrap();
    let before = accessed();
    let user = Some(User { uid: 4321, gid: 4321, groups: vec![4321] });
    let account = replay_with(plan(&wanted, tunings().remove(1)), Options { user, ..Options::default() });
    let mut skipped: Vec<_> = account.skipped.iter().map(|s| (s.path.clone(), s.why)).collect();
    skipped.sort();
    let refused = ["closed/public", "private"].map(|name| (image.join(name), Refusal::Permission));
    assert_eq!(skipped, refused);
    assert_eq!(resident(&image.join("public")), ranges);
    assert_eq!(account.data.brought_in(), Bytes(4 * page_size()));
    assert_eq!(accessed(), before, "reading ahead is no access");
}

#[test]
fn file_systems_that_must_not_be_touched_are_not() {
    if !private_mounts() {
        return;
    }
    let Some(image) = LoopImage::in_this_namespace("ext4", 32) else { return };
    let memory = image.join("memory");
    fs::create_dir(&memory).unwrap();
    if !run("mount", &["-t", "tmpfs", "tmpfs", memory.to_str().unwrap()]) {
        return;
    }
    fs::write(memory.join("file"), "x").unwrap();
    let wanted = Wanted { files: vec![wanted_file(&memory.join("file"), &[pages(0, 1)])], devices: vec![] };
    let account = replay(plan(&wanted, tunings().remove(0)));
    assert_eq!(account.skipped, [Skipped { path: memory.join("file"), why: Refusal::FileSystem }]);
    assert_eq!(account.files_opened, 0);
    run("umount", &["-l", memory.to_str().unwrap()]);
}

#[test]
fn nothing_is_read_before_the_gate_opens_or_after_a_stop() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let wanted = sample(&image.path(), |path, size| image.file(path, size));
    evict_all(&wanted);
    let gate = Gate::new().unwrap();
    let make = || {
        Replay::prepare(vec![plan(&wanted, tunings().remove(1))], &own_mounts(), &gate, Options::default())
    };
    let replay = make().unwrap();
    std::thread::sleep(Duration::from_millis(30));
    assert!(!replay.is_done() && !gate.is_open());
    replay.stopper().stop();
    let account = replay.finish();
    assert_eq!((account.stopped, account.steps, account.time), (Some(Stopped::Cancelled), 0, None));
    assert_eq!(account.data, Traffic::default());

    // One that nobody waits for ends by itself, its gate still closed.
    drop(make().unwrap());
    for file in &wanted.files {
        assert_eq!(resident(&file.path), []);
    }

    let replay = make().unwrap();
    replay.stopper().stop();
    gate.open();
    assert_eq!(replay.finish().data.requested, Bytes(0));
}

#[test]
fn short_memory_stops_it() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let wanted = sample(&image.path(), |path, size| image.file(path, size));
    evict_all(&wanted);
    let limits = Limits { leave: Bytes(u64::MAX), ..Limits::default() };
    // One worker: others would go on while it looks.
    let account = replay_with(plan(&wanted, tunings().remove(0)), Options { limits, ..Options::default() });
    assert_eq!((account.stopped, account.steps), (Some(Stopped::MemoryLow), 0));
}

#[test]
fn a_descriptor_opens_the_gate() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let wanted = sample(&image.path(), |path, size| image.file(path, size));
    evict_all(&wanted);
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let gate = Gate::opened_by(reader).unwrap();
    let replay =
        Replay::prepare(vec![plan(&wanted, tunings().remove(2))], &own_mounts(), &gate, Options::default())
            .unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert!(!replay.is_done());
    drop(writer);
    let account = replay.finish();
    assert!(gate.is_open());
    assert_eq!(account.files_opened, 6);
}

#[test]
fn the_gate_opens_quickly() {
    let empty = || plan(&Wanted::default(), tunings().remove(1));
    let mut reactions: Vec<Nanos> = (0..50)
        .map(|_| {
            let gate = Gate::new().unwrap();
            let replay =
                Replay::prepare(vec![empty()], &Mounts::default(), &gate, Options::default()).unwrap();
            gate.open();
            replay.finish().reaction.unwrap()
        })
        .collect();
    reactions.sort_unstable();
    eprintln!("reaction in ns: median {}, worst {}", reactions[25].0, reactions[49].0);
    // A machine that runs other tests at the same time may take longer, but not always.
    assert!(reactions[10] < Nanos(1_000_000), "{reactions:?}");
}

#[test]
fn workers_have_names_and_priorities() {
    let gate = Gate::new().unwrap();
    let (target, tuning) = tunings().remove(1);
    let target = Target { name: "mmcblk0".into(), ..target };
    let priority = IoPriority::BestEffort(3);
    let plan = plan(&Wanted::default(), (target, Tuning { workers: 2, priority, ..tuning }));
    let replay = Replay::prepare(vec![plan], &Mounts::default(), &gate, Options::default()).unwrap();
    let mut workers = Vec::new();
    for task in fs::read_dir("/proc/self/task").unwrap().flatten() {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if name.starts_with("read mmcblk") {
            let output = Command::new("ionice").arg("-p").arg(task.file_name()).output();
            workers.push((
                name.trim().to_owned(),
                output.map(|o| String::from_utf8(o.stdout).unwrap().trim().to_owned()),
            ));
        }
    }
    workers.sort_by(|a, b| a.0.cmp(&b.0));
    gate.open();
    assert_eq!(replay.finish().remarks, [""; 0]);
    let names: Vec<&str> = workers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["read mmcblk/0", "read mmcblk/1"]);
    for (_, shown) in &workers {
        match shown {
            Ok(shown) => assert_eq!(shown, "best-effort: prio 3"),
            Err(_) => skip("ionice"),
        }
    }
}

#[test]
fn a_plan_in_other_pages_is_refused() {
    let gate = Gate::new().unwrap();
    let plan = Plan { page_size: 1234, ..plan(&Wanted::default(), tunings().remove(0)) };
    let error = Replay::prepare(vec![plan], &Mounts::default(), &gate, Options::default()).unwrap_err();
    assert!(error.to_string().contains("1234"), "{error}");
}

#[test]
fn a_plan_with_wrong_numbers_does_no_harm() {
    let (target, tuning) = tunings().remove(1);
    let steps = vec![
        Step::Open { file: 7 },
        Step::Read { file: 9, pages: pages(0, 3), at: Nanos(0) },
        Step::Metadata { device: 3, pages: pages(0, u64::MAX) },
    ];
    let account = replay(Plan { steps, ..plan(&Wanted::default(), (target, tuning)) });
    assert_eq!((account.steps, account.data, account.metadata), (3, Traffic::default(), Traffic::default()));
}

/// The variable that tells the test below that it runs in a process with few descriptors.
const FEW: &str = "HEADSTART_TEST_FEW_DESCRIPTORS";

#[test]
fn thousands_of_files_need_few_descriptors() {
    if std::env::var_os(FEW).is_none() {
        // The limit is the whole process's, so another one is started for it.
        let test = "replay::tests::thousands_of_files_need_few_descriptors";
        let script = format!("ulimit -n 64 && exec \"$0\" --exact {test} --nocapture");
        let me = std::env::current_exe().unwrap();
        let output = Command::new("sh").arg("-c").arg(script).arg(me).env(FEW, "1").output().unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        eprint!("{said}");
        return;
    }
    let Some(image) = LoopImage::new("ext4", 256) else { return };
    let ranges = [pages(0, 1), pages(3, 4)];
    let files = (0..5000).map(|n| {
        let path = image.join(format!("{n}"));
        fs::write(&path, vec![7; 16384]).unwrap();
        wanted_file(&path, &ranges)
    });
    let wanted = Wanted { files: files.collect(), devices: vec![] };
    run("sync", &["-f", image.path().to_str().unwrap()]);
    for kind in tunings() {
        evict_all(&wanted);
        let account = replay(plan(&wanted, kind));
        assert_eq!(account.skipped, []);
        assert_eq!(account.files_opened, 5000);
        eprintln!("5000 files, 10000 requests: {} of processor time, {:?} in all", account.cpu, account.time);
        assert_eq!(account.data.brought_in(), Bytes(10_000 * page_size()));
        for file in wanted.files.iter().step_by(97) {
            assert_eq!(resident(&file.path), ranges, "{}", file.path.display());
        }
    }
}
