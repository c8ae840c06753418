//! `doctor`, in words.

use std::io::{self, Write as _};
use std::process::ExitCode;

use headstart_daemon::doctor::{Finding, State, examine};
use headstart_shared::text::wrap;

use crate::Context;
use crate::args::Doctor;

/// Prints the findings. Fails if something is missing for which there is no replacement.
pub(crate) fn doctor(options: &Doctor, context: &Context) -> anyhow::Result<ExitCode> {
    let findings = examine(&context.roots);
    let mut out = io::stdout().lock();
    if options.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&findings)?)?;
    } else {
        for finding in &findings {
            print(&mut out, finding)?;
        }
    }
    let missing = findings.iter().any(|finding| finding.state == State::Missing);
    Ok(if missing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn print(out: &mut impl io::Write, finding: &Finding) -> io::Result<()> {
    let mark = match finding.state {
        State::Good => "ok      ",
        State::Replaced => "replaced",
        State::Missing => "MISSING ",
        State::Fact => "        ",
    };
    writeln!(out, "{mark}  {}", finding.feature)?;
    let lines = [
        Some(finding.found.clone()),
        finding.instead.as_ref().map(|what| format!("instead: {what}")),
        finding.cure.as_ref().map(|what| format!("cure: {what}")),
    ];
    for line in lines.iter().flatten().flat_map(|text| wrap(text, 68)) {
        writeln!(out, "            {line}")?;
    }
    Ok(())
}
