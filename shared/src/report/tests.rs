use crate::sample;

#[test]
fn the_table_of_a_gain() {
    insta::assert_snapshot!(sample::faster().to_table(80));
}

#[test]
fn the_table_of_a_troubled_comparison() {
    insta::assert_snapshot!(sample::troubled().to_table(80));
}

#[test]
fn no_line_is_wider_than_asked() {
    let long: Vec<u64> = (0..40).map(|n| 1000 + n).collect();
    for sample in [sample::faster(), sample::troubled(), sample::comparison(&long, &long, &long)] {
        for width in [72, 80, 100, 200] {
            for line in sample.to_table(width).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn the_csv_has_a_line_for_every_start() {
    let mut sample = sample::troubled();
    sample.app.0 = "a \"b\", c".to_owned();
    sample.left_out[0].reason = "=1+1\nx".to_owned();
    let csv = sample.to_csv();
    let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 1 + 15 + 1);
    assert_eq!(lines[1], "\"a \"\"b\"\", c\",1,1,cold,0.062000000,132120576,first-window,evict,");
    assert_eq!(lines[16], "\"a \"\"b\"\", c\",,6,cold,,,first-window,evict,\"'=1+1\nx\"");
}

#[test]
fn a_name_cannot_reach_the_terminal_with_escapes() {
    let mut sample = sample::faster();
    sample.name = "\x1b]0;owned\x07".to_owned();
    assert!(!sample.to_table(80).contains(['\x1b', '\x07']));
}
