use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;

use super::*;

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, mode) in [("program", 0o755), ("document", 0o644)] {
        fs::write(dir.path().join(name), "#!/bin/sh\n").unwrap();
        fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::create_dir(dir.path().join("sub")).unwrap();
    symlink("program", dir.path().join("alias")).unwrap();
    dir
}

fn resolved(name: &str, dir: &Path) -> Result<PathBuf, Error> {
    resolve(name.as_ref(), &["/nonexistent".into(), dir.to_path_buf()], dir)
}

#[test]
fn a_name_is_looked_up_in_the_path_and_a_script_stays_itself() {
    let dir = folder();
    assert_eq!(resolved("program", dir.path()).unwrap(), dir.path().join("program"));
    assert_eq!(resolved("alias", dir.path()).unwrap(), dir.path().join("alias"));
    assert_eq!(resolved("./program", dir.path()).unwrap(), dir.path().join("program"));
    assert_eq!(resolved("sub/../program", dir.path()).unwrap(), dir.path().join("sub/../program"));
}

#[test]
fn what_is_not_there_or_no_program_is_refused_with_its_path() {
    let dir = folder();
    let error = |name: &str| resolved(name, dir.path()).unwrap_err().to_string();
    assert!(error("progarm").ends_with("did you mean program?"), "{}", error("progarm"));
    assert!(error("document").contains("no command document in /nonexistent:"));
    assert!(error("./document").contains("chmod +x"));
    assert!(error("./sub").contains("not a regular file"));
    assert!(error("./absent").contains("absent: No such file"));
    assert!(matches!(resolved("", dir.path()), Err(Error::Empty)));
}

#[test]
fn an_identity_can_be_shown_and_leads_back() {
    let odd = PathBuf::from(OsString::from_vec(b"/a\xffb\\c\nd \xc3\xa9".to_vec()));
    assert_eq!(app_id(&odd).0, "/a\\xffb\\\\c\\x0ad é");
    assert_eq!(path_of(&app_id(&odd)), odd);
    assert_eq!(app_id(Path::new("/usr/bin/gedit")).0, "/usr/bin/gedit");
    assert_eq!(path_of(&AppId("/a\\xzz\\x".into())), PathBuf::from("/a\\xzz\\x"));
}

proptest! {
    #[test]
    fn every_path_comes_back(bytes in prop::collection::vec(1u8.., 0..40)) {
        let path = PathBuf::from(OsString::from_vec(bytes));
        prop_assert_eq!(path_of(&app_id(&path)), path);
    }
}
