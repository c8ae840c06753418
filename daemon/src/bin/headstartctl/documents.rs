//! Man pages and completions, made from the definition of the command line.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use clap::Command;
use clap_complete::Shell;

/// Prints completions.
pub(crate) fn completions(shell: Shell, command: &mut Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, command, "headstartctl", &mut script);
    io::Write::write_all(&mut io::stdout(), &script)?;
    Ok(())
}

/// Writes a man page for the program and for each of its commands.
pub(crate) fn man(dir: &Path, command: Command) -> anyhow::Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make the folder {}", dir.display()))?;
    clap_mangen::generate_to(command, dir)
        .with_context(|| format!("cannot write man pages to {}", dir.display()))
}
