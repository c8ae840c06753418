use super::*;
use crate::sample;
use crate::text::English;

fn picture(comparison: &Comparison) -> String {
    svg(comparison, &Theme::LIGHT, &English)
}

#[test]
fn the_picture_of_a_gain() {
    insta::assert_snapshot!(picture(&sample::faster()));
}

#[test]
fn the_same_comparison_gives_the_same_bytes() {
    assert_eq!(picture(&sample::troubled()), picture(&sample::troubled()));
}

/// Every element is closed and every name is escaped. Not a parser, but enough to see a stray `<` or `&`.
fn assert_well_formed(svg: &str) {
    let mut open = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("every < has its >");
        assert!(!text.contains('>'), "a stray > in {text}");
        match tag {
            _ if tag.starts_with('?') || tag.ends_with('/') => {}
            _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(&tag[1..])),
            _ => open.push(tag.split(' ').next().unwrap()),
        }
    }
    assert!(open.is_empty(), "{open:?} not closed");
    for entity in svg.split('&').skip(1) {
        assert!(["amp;", "lt;", "gt;", "quot;", "apos;"].iter().any(|known| entity.starts_with(known)));
    }
    assert!(svg.chars().all(|c| c == '\n' || !c.is_control()), "XML 1.0 has no control characters");
}

struct Arabic;

impl Labels for Arabic {
    fn text(&self, english: &'static str) -> String {
        if english == "Cold" { "بارد".to_owned() } else { english.to_owned() }
    }

    fn plural(&self, one: &'static str, many: &'static str, n: u64) -> String {
        English.plural(one, many, n)
    }

    fn right_to_left(&self) -> bool {
        true
    }
}

#[test]
fn hostile_and_extreme_comparisons_give_well_formed_pictures() {
    let mut hostile = sample::faster();
    hostile.name = "<b>&\"'\u{1b}[31m\u{202e}\u{0}".repeat(20);
    hostile.remarks = vec!["]]> <!-- & --".to_owned(), String::new()];
    let mut huge = sample::faster();
    huge.runs[0].time = crate::units::Nanos(u64::MAX);
    huge.runs[1].time = crate::units::Nanos(0);
    let many: Vec<u64> = (0..1000).map(|n| 900 + n % 97).collect();
    for sample in [
        hostile,
        huge,
        sample::comparison(&[], &[], &[]),
        sample::comparison(&[5], &[], &[4]),
        sample::comparison(&[0; 5], &[0; 5], &[0; 5]),
        sample::comparison(&many, &many, &many),
    ] {
        assert_well_formed(&picture(&sample));
        assert_well_formed(&svg(&sample, &Theme::DARK, &Arabic));
    }
}

#[test]
fn right_to_left_languages_get_a_mirrored_picture() {
    let mirrored = svg(&sample::faster(), &Theme::LIGHT, &Arabic);
    assert!(mirrored.contains("\u{2067}بارد\u{2069}"), "text is marked as right to left");
    let zero = |svg: &str| {
        let is_zero = |text: &&str| text.contains(">\n0 s") || text.contains(">\n\u{2067}0 s");
        let text = svg.split("<text x=\"").find(is_zero);
        text.unwrap().split('"').next().unwrap().parse::<u32>().unwrap()
    };
    assert!(zero(&mirrored) > 500 && zero(&picture(&sample::faster())) < 300, "the axis begins at the right");
}

#[test]
fn a_picture_fits_any_width() {
    for sample in [sample::faster(), sample::troubled(), sample::no_gain()] {
        for width in [1, 120, 300, 360, 519, 520, 800, 2000] {
            let picture =
                Picture { comparison: &sample, theme: &Theme::LIGHT, labels: &English, complete: false };
            let summary = sample.summary();
            let layout = Layout::new(&picture, &summary, f64::from(width), None, &canvas::table_width);
            assert!(
                layout.plot_bottom > layout.plot_top && f64::from(layout.height_px()) > layout.plot_bottom
            );
            if width < 300 {
                continue;
            }
            for (at, label) in &layout.ticks {
                let half = canvas::table_width(label, Font::regular(12.0)) / 2.0;
                assert!(at - half >= 0.0 && at + half <= f64::from(width), "{width}: {label} at {at}");
            }
            for one in &summary.conditions {
                let end = layout.x(one.times.iter().copied().fold(0.0, f64::max));
                assert!(end <= layout.right, "{width}: a mark at {end}");
            }
        }
    }
}

/// Contrast as in WCAG 2.1.
fn contrast(a: Rgb, b: Rgb) -> f64 {
    let luminance = |Rgb(r, g, b): Rgb| {
        let linear = [r, g, b]
            .map(|c| f64::from(c) / 255.0)
            .map(|c| if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    };
    let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
    a.max(b) / a.min(b)
}

#[test]
fn text_can_be_read_in_every_theme() {
    for (dark, high) in [(false, false), (true, false), (false, true), (true, true)] {
        let theme = Theme::of(dark, high);
        let needed = if high { 7.0 } else { 4.5 };
        for text in [theme.foreground, theme.dim, theme.cold, theme.prefetched, theme.gain, theme.loss] {
            let reached = contrast(text, theme.background);
            assert!(reached >= needed, "{text:?} on {:?}: {reached:.2}", theme.background);
        }
        assert!(contrast(theme.warm, theme.background) >= 3.0, "marks need 3 : 1");
    }
}
