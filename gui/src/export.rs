//! Writing a result to a file of the user's choice: whole or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use headstart_shared::chart::{self, EXPORT_WIDTH, Picture, Theme};
use headstart_shared::comparison::Comparison;
use headstart_shared::text::Labels;
use headstart_shared::words;
use plotters::prelude::IntoDrawingArea;

use crate::widgets::pango_backend::PangoBackend;

/// Pixels of a PNG per logical pixel: sharp on a screen of twice the usual density.
const PNG_SCALE: i32 = 2;

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// The picture, scalable.
    Svg,
    /// The picture in pixels.
    Png,
    /// Every start, one a line.
    Csv,
    /// Everything, as `headstartctl try --json` writes it.
    Json,
}

impl Format {
    /// The ending of a file's name.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
            Self::Csv => "csv",
            Self::Json => "json",
        }
    }
}

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    /// The file could not be written.
    #[error("{path}: {source}", path = path.display())]
    Write {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The picture could not be drawn.
    #[error("the picture could not be drawn: {0}")]
    Draw(String),
}

/// A name for a file that holds this result.
pub(crate) fn file_name(comparison: &Comparison, format: Format) -> String {
    let safe = |c: char| if c.is_alphanumeric() || c == '-' || c == '.' { c } else { '-' };
    let name: String = words::name(comparison).chars().map(safe).take(60).collect();
    let name = name.trim_matches(['-', '.']).to_lowercase();
    let name = if name.is_empty() { "result" } else { &name };
    format!("headstart-{name}.{}", format.extension())
}

/// Writes a result. An existing file is replaced only when the new one is complete on the disk.
pub(crate) fn write(
    path: &Path,
    comparison: &Comparison,
    format: Format,
    labels: &dyn Labels,
) -> Result<(), ExportError> {
    let content = content(comparison, format, labels)?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = tempfile::Builder::new().prefix(".headstart-").tempfile_in(folder).and_then(|mut file| {
        file.write_all(&content)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        readable(path)
    });
    written.map_err(|source| ExportError::Write { path: path.to_owned(), source })
}

/// Temporary files are for their owner only; an exported one is an ordinary file.
fn readable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))
}

fn content(comparison: &Comparison, format: Format, labels: &dyn Labels) -> Result<Vec<u8>, ExportError> {
    let draw = |error: &dyn std::fmt::Display| ExportError::Draw(error.to_string());
    Ok(match format {
        Format::Svg => chart::svg(comparison, &Theme::LIGHT, labels).into_bytes(),
        Format::Png => png(comparison, labels).map_err(|error| draw(&error))?,
        Format::Csv => comparison.to_csv().into_bytes(),
        Format::Json => comparison.to_json().map_err(|error| draw(&error))?.into_bytes(),
    })
}

fn png(comparison: &Comparison, labels: &dyn Labels) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let picture = Picture { comparison, theme: &Theme::LIGHT, labels, complete: true };
    let (width, height) = (i32::try_from(EXPORT_WIDTH)?, i32::try_from(picture.height(EXPORT_WIDTH))?);
    let surface = cairo::ImageSurface::create(cairo::Format::Rgb24, width * PNG_SCALE, height * PNG_SCALE)?;
    {
        let context = cairo::Context::new(&surface)?;
        context.scale(f64::from(PNG_SCALE), f64::from(PNG_SCALE));
        let backend = PangoBackend::new(&context, (width.cast_unsigned(), height.cast_unsigned()), None);
        picture.draw(&backend.into_drawing_area(), 1.0)?;
    }
    let mut png = Vec::new();
    surface.write_to_png(&mut png)?;
    Ok(png)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_shared::sample;
    use headstart_shared::text::English;

    #[test]
    fn every_format_is_written_whole() {
        let dir = tempfile::tempdir().unwrap();
        for format in [Format::Svg, Format::Png, Format::Csv, Format::Json] {
            let path = dir.path().join(file_name(&sample::faster(), format));
            write(&path, &sample::faster(), format, &English).unwrap();
            let content = std::fs::read(&path).unwrap();
            let begins: &[u8] = match format {
                Format::Svg => b"<?xml",
                Format::Png => b"\x89PNG",
                Format::Csv => b"app,order",
                Format::Json => b"{",
            };
            assert!(content.starts_with(begins), "{format:?}");
        }
        let names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 4, "no temporary file is left: {names:?}");
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = write(Path::new("/no/such/x.svg"), &sample::faster(), Format::Svg, &English).unwrap_err();
        assert!(error.to_string().starts_with("/no/such/x.svg: "), "{error}");
    }

    #[test]
    fn names_of_files_are_tame() {
        let mut sample = sample::faster();
        sample.name = "../../etc/x\u{0}y z".to_owned();
        assert_eq!(file_name(&sample, Format::Csv), "headstart-etc-x-y-z.csv");
        sample.name = "/".repeat(300);
        sample.app.0 = "//".to_owned();
        assert_eq!(file_name(&sample, Format::Png), "headstart-result.png");
    }
}
