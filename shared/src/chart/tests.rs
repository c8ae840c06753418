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
