//! A recorder that is armed for a program which runs already.

use super::program::{command, line};
use super::*;
use crate::sys::loop_images::LoopImage;
use crate::trace::recorder::Standing;
use crate::watch::processes::descendants;

#[test]
fn a_running_program_and_all_its_threads_and_children_are_recorded_from_then_on() {
    let Some(image) = LoopImage::new("ext4", 64) else { return };
    let names = ["before", "own", "child", "forked", "thread", "another"];
    let files = names.map(|name| image.file(name, bytes(20)));
    let [before, own, child, forked, a_thread, anothers] = files.each_ref();
    for path in &files {
        make_cold(path);
    }
    let [waiting, ready, armed] = ["waiting", "ready", "armed"].map(|name| image.join(name));
    let script = [
        line("read 9 1", before),
        format!("beside {};{};{}", line("tell", &waiting), line("wait", &armed), line("read 2 1", child)),
        line("wait", &waiting),
        line("tell", &ready),
        line("wait", &armed),
        line("read 1 1", own),
        line("fork read 3 1", forked),
        line("thread read 4 1", a_thread),
    ];
    let standing = match Standing::prepare(Backend::Touched, &Roots::default()) {
        Ok(standing) => standing,
        Err(error) => return skip(&error.to_string()),
    };
    let run = crate::watch::testing::start(&command(&script));
    until("the program", || ready.exists());
    let processes = || descendants(&Roots::default(), run.keeper()).iter().map(|p| p.key.pid).collect();
    let recorder = standing.arm(processes).unwrap();
    std::fs::write(&armed, "").unwrap();
    std::fs::read(anothers).unwrap();
    until("the end of the program", || run.is_empty());
    let recorded = Recorded { started: run.started(), keeper: run.keeper(), prefetched: false };
    let recording = recorder.finish(recorded).unwrap();
    for (path, page) in [(own, 1), (child, 2), (forked, 3), (a_thread, 4)] {
        assert_eq!(pages_of(&recording, path), [range(page, page + 1)], "{}", path.display());
    }
    assert_eq!(pages_of(&recording, before), [], "touched before");
    assert_eq!(pages_of(&recording, anothers), [], "touched by another program");
}
