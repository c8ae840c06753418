//! Headstart's window: shows the result of the last `headstartctl try`, and keeps it up to date.
//!
//! Data flows one way. `handover` reads the file that `headstartctl` writes and turns it into a `Loaded`; `app` holds
//! it and decides which page is shown; `pages` turn it into widgets; `widgets` draw. Nothing here computes a figure or
//! words a verdict: both are `headstart_shared`'s, so window, terminal and files always agree.

mod a11y;
mod actions;
mod app;
mod export;
mod handover;
mod i18n;
mod pages;
mod widgets;

use std::path::PathBuf;
use std::process::ExitCode;

use relm4::RelmApp;

/// The name of the application on the bus, of its desktop file, metainfo and icon.
const APP_ID: &str = "io.github.headstart_desktop.Headstart";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let file = match arguments.next() {
        Some(option) if option == "--version" => {
            println!("headstart {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some(option) if option.to_string_lossy().starts_with('-') => {
            let help = option == "--help" || option == "-h";
            println!(
                "Usage: headstart [RESULT.json]\n\nShows the last result of `headstartctl try`, or the given one."
            );
            return if help { ExitCode::SUCCESS } else { ExitCode::from(2) };
        }
        other => other.map(PathBuf::from),
    };
    // GTK must have set the locale before the first sentence is looked up.
    if let Err(error) = adw::init() {
        eprintln!("headstart: no display to open a window on ({error}). In a terminal: headstartctl try APP");
        return ExitCode::FAILURE;
    }
    i18n::init();
    let file = file.unwrap_or_else(|| {
        handover::default_path(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME"))
    });
    RelmApp::new(APP_ID).with_args(Vec::new()).run::<app::App>(std::path::absolute(&file).unwrap_or(file));
    ExitCode::SUCCESS
}
