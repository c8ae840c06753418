use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use proptest::prelude::*;

use super::*;

fn read_text(text: &str) -> Result<Config, String> {
    Config::from_toml(Path::new("/etc/headstart/config.toml"), text).map_err(|e| e.to_string())
}

fn refused(text: &str) -> String {
    read_text(text).expect_err("it is wrong")
}

#[test]
fn a_file_with_nothing_in_it_has_the_defaults_and_so_has_none() {
    assert_eq!(read_text("").expect("right"), Config::default());
    assert_eq!(read_text("# only a remark\n[care]\n").expect("right"), Config::default());
    assert_eq!(Config::load(Path::new("/nonexistent/config.toml")).expect("none"), Config::default());
}

#[test]
fn each_key_is_taken_over() {
    let config = read_text(
        "[learning]\nruns = 5\nagain = 0\n[comparison]\nholdout = 0.25\n[care]\npause_on_battery = true\n\
         daily_budget = \"1.5 GiB\"\n[priorities]\nenabled = false\n\
         [history]\nkeep_launches_days = 30\nkeep_activity_days = 7\nsize = 10_485_760\n",
    );
    let expected = Config {
        learn: 5,
        shares: Shares { holdout: 0.25, record: 0.0 },
        pause_on_battery: true,
        daily_budget: Some(Bytes(1536 << 20)),
        priorities: false,
        retention: Retention { launches: DAY * 30, activity: DAY * 7, size: Bytes(10 << 20) },
    };
    assert_eq!(config, Ok(expected));
    assert_eq!(read_text("care.daily_budget = \"none\"").expect("right").daily_budget, None);
    assert_eq!(read_text("care.daily_budget = 0").expect("right").daily_budget, Some(Bytes(0)));
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_the_cure() {
    let texts = [
        "[learning]\nruns = 21\n",
        "[learning]\nruns = 2.5\n",
        "[comparison]\n  holdout = 1.5 # too much\n",
        "[comparison]\nholdout = nan\n",
        "[care]\npause_on_battery = \"yes\"\n",
        "[care]\ndaily_budget = \"2 GB\"\n",
        "[care]\ndaily_budget = -1\n",
        "[history]\nsize = \"1 KiB\"\n",
        "[history]\nkeep_launches_days = 0\n",
        "[lerning]\nruns = 3\n",
        "[learning]\nrusn = 3\n",
        "[learning]\nholdout = 0.5\n",
        "holdout = 0.5\n",
        "learning = 3\n",
        "[learning\n",
        "[learning]\nruns = 3\nruns = 4\n",
        "[zebra]\n",
        "[care]\ndaily_budget = \"99999999999999 GiB\"\n",
    ];
    let all: Vec<String> = texts.map(refused).into();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn the_file_with_every_key_is_explained_and_means_the_same() {
    let text = Config::default().to_toml();
    assert_eq!(read_text(&text), Ok(Config::default()));
    insta::assert_snapshot!(text);
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        learn in 1u32..=20, holdout in 0.0..=1.0, record in 0.0..=1.0, flags in any::<(bool, bool)>(),
        budget in proptest::option::of(0..=i64::MAX.unsigned_abs()), launches in 1u32..36_500,
        activity in 1u32..36_500, size in 1u64 << 20..1 << 50,
    ) {
        let config = Config {
            learn,
            shares: Shares { holdout, record },
            pause_on_battery: flags.0,
            daily_budget: budget.map(Bytes),
            priorities: flags.1,
            retention: Retention { launches: DAY * launches, activity: DAY * activity, size: Bytes(size) },
        };
        prop_assert_eq!(read_text(&config.to_toml()), Ok(config));
    }

    #[test]
    fn no_text_breaks_it(text in "[\\PC\n]{0,200}") {
        if let Err(told) = read_text(&text) {
            prop_assert!(told.starts_with("/etc/headstart/config.toml:"), "{}", told);
        }
    }
}

#[test]
fn saving_keeps_the_mode_and_a_wrong_text_changes_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("config.toml");
    let saved = Config::save(&path, "learning.runs = 4").expect("saved");
    assert_eq!((saved.learn, Config::load(&path).expect("right").learn), (4, 4));
    fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("its mode");
    Config::save(&path, "# mine\nlearning.runs = 6\n").expect("saved");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o640);
    Config::save(&path, "learning.runs = 99").expect_err("wrong");
    assert_eq!(fs::read_to_string(&path).expect("there"), "# mine\nlearning.runs = 6\n");
}

#[test]
fn what_is_no_file_or_too_long_is_not_read() {
    let dir = tempfile::tempdir().expect("a folder");
    let told = Config::load(dir.path()).expect_err("a folder").to_string();
    assert!(told.contains("not a regular file") && told.contains("move the file away"), "{told}");
    let path = dir.path().join("long.toml");
    fs::write(&path, "#".repeat(usize::try_from(MAX_LENGTH).expect("small") + 1)).expect("written");
    assert!(Config::load(&path).expect_err("long").to_string().contains("longer than 65536 bytes"));
}
