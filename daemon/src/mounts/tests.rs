use std::os::unix::ffi::OsStringExt as _;

use proptest::prelude::*;

use super::*;

fn mounts(text: &str) -> Mounts {
    Mounts::parse(text.as_bytes()).unwrap()
}

fn dev(major: u32, minor: u32) -> DeviceNumber {
    DeviceNumber { major, minor }
}

const DESKTOP: &str = "\
23 64 0:22 / /proc rw,nosuid shared:13 - proc proc rw
24 64 0:23 / /sys rw,nosuid shared:2 - sysfs sysfs rw
64 1 0:34 /@ / rw,relatime shared:1 - btrfs /dev/mapper/luks-1 rw,compress=zstd:1,ssd,subvolid=256,subvol=/@
70 64 0:34 /@home /home rw,relatime shared:30 master:7 - btrfs /dev/mapper/luks-1 rw,subvolid=257,subvol=/@home
71 64 259:1 / /boot rw - ext4 /dev/nvme0n1p1 rw
72 70 0:50 / /home/ann/far rw - fuse.sshfs ann@far:/ rw,user_id=1000
73 64 0:51 / /net rw - autofs /etc/auto.net rw,fd=7
74 64 0:52 / /srv rw - nfs4 server:/srv rw
75 64 7:3 / /snap/core/1 ro - squashfs /dev/loop3 ro
";

#[test]
fn a_line_is_taken_apart() {
    let table =
        mounts("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:3 - ext3 /dev/root rw,errors=continue\n");
    let mount = table.by_id(36).unwrap();
    assert_eq!((mount.parent, mount.device), (35, dev(98, 0)));
    assert_eq!((mount.root.as_path(), mount.mount_point.as_path()), (Path::new("/mnt1"), Path::new("/mnt2")));
    assert_eq!(
        (mount.fs_type.as_os_str(), mount.source.as_os_str()),
        ("ext3".as_ref(), "/dev/root".as_ref())
    );
    assert_eq!(mount.options, "rw,noatime");
    assert_eq!(mount.super_option("errors").collect::<Vec<_>>(), ["continue"]);
    assert_eq!(mount.super_option("rw").count(), 1);
    assert_eq!(mount.super_option("err").count(), 0);
}

#[test]
fn no_optional_fields_and_no_options_are_fine() {
    let table = mounts("1 0 0:2 / / rw - rootfs none");
    assert_eq!(table.by_id(1).unwrap().super_options, "");
}

#[test]
fn names_are_unescaped_and_need_not_be_utf8() {
    let mut line = br"30 1 8:1 /a\040b\134\011 /m\012\043".to_vec();
    line.push(0xff);
    line.extend(br" rw - ext4 /dev/disk\040x rw");
    let table = Mounts::parse(&line).unwrap();
    let mount = table.by_id(30).unwrap();
    assert_eq!(mount.root, Path::new("/a b\\\t"));
    assert_eq!(mount.mount_point.as_os_str().as_bytes(), b"/m\n#\xff");
    assert_eq!(mount.source, "/dev/disk x");
}

#[test]
fn a_damaged_line_is_named() {
    let error =
        Mounts::parse(b"1 0 0:2 / / rw - rootfs none rw\n2 1 8 / /x rw - ext4 /dev/sda rw\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2 of the table of mounts is not in the kernel's format: 2 1 8 / /x rw - ext4 /dev/sda rw"
    );
}

#[test]
fn kinds_are_known_without_a_look() {
    let table = mounts(DESKTOP);
    let kind = |path: &str| table.at(Path::new(path)).unwrap().kind();
    assert_eq!(kind("/usr/bin/true"), Kind::Drive);
    assert_eq!(kind("/boot/vmlinuz"), Kind::Drive);
    assert_eq!(kind("/home/ann/far/x"), Kind::Fuse);
    assert_eq!(kind("/home/ann/farther"), Kind::Drive);
    assert_eq!(kind("/net/x"), Kind::Autofs);
    assert_eq!(kind("/srv/x"), Kind::Network);
    assert_eq!(kind("/snap/core/1/lib"), Kind::Drive);
    assert_eq!(kind("/proc/1/maps"), Kind::Virtual);
    for (name, device, kind) in [
        ("fuseblk", dev(8, 1), Kind::Fuse),
        ("fuse.gocryptfs", dev(0, 40), Kind::Fuse),
        ("fusectl", dev(0, 41), Kind::Virtual),
        ("virtiofs", dev(0, 41), Kind::Fuse),
        ("zfs", dev(0, 42), Kind::Zfs),
        ("tmpfs", dev(0, 43), Kind::Memory),
        ("cifs", dev(0, 44), Kind::Network),
        ("9p", dev(0, 44), Kind::Network),
        ("newfs", dev(0, 45), Kind::Unknown),
        ("newfs", dev(8, 2), Kind::Drive),
        ("bcachefs", dev(0, 46), Kind::Drive),
    ] {
        assert_eq!(Kind::of(OsStr::new(name), device), kind, "{name}");
    }
    assert!(!Kind::Unknown.is_readable());
    assert_eq!(table.untouchable(Path::new("/srv/x")), Some(Kind::Network));
    assert_eq!(table.untouchable(Path::new("/usr/x")), None);
}

#[test]
fn the_mount_met_is_the_one_not_hidden() {
    // /a/b is hidden by a later mount on /a; /c holds two mounts, one on the other.
    let table = mounts(
        "1 0 8:1 / / rw - ext4 r rw
10 1 8:2 / /a/b rw - ext4 x rw
11 1 8:3 / /a rw - ext4 y rw
12 1 8:4 / /c rw - ext4 z rw
13 12 8:5 / /c rw - ext4 w rw",
    );
    let at = |path: &str| table.at(Path::new(path)).map(|m| m.id);
    assert_eq!(at("/a/b/file"), Some(11));
    assert_eq!(at("/c/file"), Some(13));
    assert_eq!(at("/c"), Some(13));
    assert_eq!(at("/ab"), Some(1));
    assert_eq!(table.find(dev(8, 2), Path::new("/file")), None);
    assert_eq!(table.find(dev(8, 3), Path::new("/file")), Some("/a/file".into()));
    assert_eq!(table.find(dev(8, 4), Path::new("/file")), None);
}

#[test]
fn initramfs_root_is_below_the_real_one() {
    let table = mounts("1 1 0:2 / / rw - rootfs rootfs rw\n27 1 254:0 / / rw - ext4 /dev/vda rw");
    assert_eq!(table.at(Path::new("/etc/fstab")).map(|m| m.id), Some(27));
}

#[test]
fn a_chroot_without_a_mount_of_its_own_has_no_root_mount() {
    // As seen in a chroot to a plain directory: only what is mounted below it, parents outside.
    let table = mounts("50 27 0:22 / /proc rw - proc proc rw\n51 27 8:9 / /data rw - ext4 /dev/sdb rw");
    assert_eq!(table.at(Path::new("/data/x")).map(|m| m.id), Some(51));
    assert_eq!(table.at(Path::new("/usr")), None);
    assert_eq!(table.untouchable(Path::new("/usr")), Some(Kind::Unknown));
}

#[test]
fn a_path_of_another_namespace_is_found_here() {
    let host = mounts(DESKTOP);
    // A sandbox that sees parts of the host's file systems elsewhere.
    let sandbox = mounts(
        "200 199 0:60 / / rw - tmpfs tmpfs rw
201 200 0:34 /@/var/lib/flatpak/runtime/x/files /usr ro - btrfs /dev/mapper/luks-1 rw
202 200 0:34 /@home/ann /home/ann rw - btrfs /dev/mapper/luks-1 rw
203 200 0:34 /@snapshots/1 /old ro - btrfs /dev/mapper/luks-1 rw
204 200 259:1 /grub /g ro - ext4 /dev/nvme0n1p1 rw",
    );
    let host_path = |path: &str| {
        let path = Path::new(path);
        host.host_path(sandbox.at(path).unwrap(), path)
    };
    assert_eq!(
        host_path("/usr/lib/libc.so.6"),
        Some("/var/lib/flatpak/runtime/x/files/lib/libc.so.6".into())
    );
    assert_eq!(host_path("/usr"), Some("/var/lib/flatpak/runtime/x/files".into()));
    assert_eq!(host_path("/home/ann/.cache/x"), Some("/home/ann/.cache/x".into()));
    assert_eq!(host_path("/g/grub.cfg"), Some("/boot/grub/grub.cfg".into()));
    assert_eq!(host_path("/old/etc/passwd"), None, "no mount of ours shows that subvolume");
    assert_eq!(host_path("/tmp/x"), None);
}

#[test]
fn the_mount_of_the_smallest_part_is_preferred() {
    let table = mounts("1 0 8:1 / / rw - ext4 r rw\n2 1 8:1 /srv/www /www rw - ext4 r rw");
    assert_eq!(table.find(dev(8, 1), Path::new("/srv/www/index")), Some("/www/index".into()));
    assert_eq!(table.find(dev(8, 1), Path::new("/srv/wwwx")), Some("/srv/wwwx".into()));
}

#[test]
fn overlay_layers_are_taken_apart() {
    let table = mounts(
        "1 0 8:1 / / rw - ext4 r rw
2 1 0:70 / /merged rw - overlay overlay rw,lowerdir=/l\\0541:/l\\134:2::/d\\0401,upperdir=/u,workdir=/w
3 1 0:71 / /new rw - overlay overlay rw,lowerdir+=/a:b,lowerdir+=/c,datadir+=/d
4 1 0:72 / /mnt/nfs rw - nfs4 s:/ rw
5 1 0:73 / /far rw - overlay overlay rw,lowerdir=/mnt/nfs/x,upperdir=/u2,workdir=/w2
6 1 0:74 / /run rw - tmpfs tmpfs rw
7 1 0:75 / /live rw - overlay overlay rw,lowerdir=/l,upperdir=/run/u,workdir=/run/w",
    );
    let layers = table.by_id(2).unwrap().overlay_layers();
    assert_eq!(layers.upper, Some("/u".into()));
    assert_eq!(layers.lower, ["/l,1", "/l:2", "/d 1"].map(PathBuf::from));
    assert_eq!(table.by_id(3).unwrap().overlay_layers().lower, ["/a:b", "/c", "/d"].map(PathBuf::from));
    assert_eq!(table.by_id(1).unwrap().overlay_layers(), Layers::default());
    assert_eq!(
        table.by_id(2).unwrap().overlay_candidates(Path::new("/merged/usr/x")),
        ["/u/usr/x", "/l,1/usr/x", "/l:2/usr/x", "/d 1/usr/x"].map(PathBuf::from)
    );
    assert_eq!(table.untouchable(Path::new("/merged/x")), None);
    assert_eq!(table.untouchable(Path::new("/far/x")), Some(Kind::Network));
    assert_eq!(table.untouchable(Path::new("/live/x")), None, "an upper layer in memory hinders nothing");
}

#[test]
fn this_process_is_on_a_mount_with_the_kernels_own_id() {
    let table = Mounts::of(&Roots::default(), None).unwrap();
    let exe = std::env::current_exe().unwrap().canonicalize().unwrap();
    let stat = rustix::fs::statx(
        rustix::fs::CWD,
        &exe,
        rustix::fs::AtFlags::empty(),
        rustix::fs::StatxFlags::MNT_ID,
    )
    .unwrap();
    assert_eq!(table.at(&exe).unwrap().id, stat.stx_mnt_id);
}

#[test]
fn a_missing_process_is_named() {
    let error = Mounts::of(&Roots::default(), Some(u32::MAX)).unwrap_err();
    assert!(error.to_string().contains("/proc/4294967295/mountinfo"), "{error}");
}

#[test]
fn a_file_opened_in_another_namespace_is_found_in_ours() {
    use crate::sys::loop_images::{LoopImage, own_mounts, private_mounts, run};
    let Some(image) = LoopImage::new("ext4", 32) else { return };
    std::fs::create_dir_all(image.join("app/files/lib")).unwrap();
    let file = image.file("app/files/lib/library.so", 10);
    let bound = image.path().with_file_name("bound");
    std::fs::create_dir(&bound).unwrap();
    let (files, seen) = (image.join("app/files"), bound.join("lib/library.so"));
    let theirs = std::thread::spawn(move || {
        let made =
            private_mounts() && run("mount", &["--bind", files.to_str().unwrap(), bound.to_str().unwrap()]);
        made.then(own_mounts)
    });
    let Some(theirs) = theirs.join().unwrap() else { return };
    assert!(!seen.exists(), "bound in the other namespace only");
    let mount = theirs.at(&seen).unwrap();
    assert_eq!(own_mounts().host_path(mount, &seen), Some(file));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Mounts::parse(&text);
    }

    #[test]
    fn any_name_survives_the_kernels_escaping(name in proptest::collection::vec(1u8..=255, 1..40)) {
        let mut escaped = Vec::new();
        for &byte in &name {
            match byte {
                b' ' | b'\t' | b'\n' | b'\\' | b'#' => escaped.extend(format!("\\{byte:03o}").bytes()),
                _ => escaped.push(byte),
            }
        }
        prop_assert_eq!(unescape(&escaped), OsString::from_vec(name));
    }

    #[test]
    fn inside_and_outside_undo_each_other(root in "/[a-c]{0,2}", point in "(/[a-c]{1,2}){0,2}", rest in "(/[a-c]{1,2}){0,3}") {
        let point = if point.is_empty() { "/".to_owned() } else { point };
        let table = mounts(&format!("1 0 8:1 {root} {point} rw - ext4 r rw"));
        let mount = table.by_id(1).unwrap();
        let path = PathBuf::from(format!("{}{rest}", point.trim_end_matches('/')));
        prop_assume!(!path.as_os_str().is_empty());
        let inside = mount.inside(&path).unwrap();
        prop_assert_eq!(mount.outside(&inside).unwrap(), path);
    }
}
