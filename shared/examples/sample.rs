//! Prints an invented comparison as JSON, to look at the window without measuring: `faster`, `no-gain`, `troubled`,
//! `few`, `none`, `many` or `long`.

use headstart_shared::comparison::Comparison;
use headstart_shared::sample;

fn main() {
    let kind = std::env::args().nth(1).unwrap_or_default();
    match named(&kind).map(|sample| sample.to_json()) {
        Some(Ok(json)) => print!("{json}"),
        Some(Err(error)) => eprintln!("{error}"),
        None => eprintln!("faster, no-gain, troubled, few, none, many or long"),
    }
}

fn named(kind: &str) -> Option<Comparison> {
    Some(match kind {
        "faster" => sample::faster(),
        "no-gain" => sample::no_gain(),
        "troubled" => sample::troubled(),
        "few" => sample::comparison(&[640], &[310], &[260]),
        "none" => sample::comparison(&[], &[], &[]),
        "many" => {
            let times =
                |base: u64, spread: u64| (0..340).map(|n| base + n * 7919 % spread).collect::<Vec<_>>();
            sample::comparison(&times(2400, 700), &times(1300, 310), &times(1100, 90))
        }
        "long" => {
            let mut sample = sample::faster();
            sample.name = "<b>برنامج</b> & an application with a very long name ".repeat(7);
            sample
        }
        _ => return None,
    })
}
