//! Who may do what: polkit decides, and where it does not answer nobody but root may.
//!
//! The subject is the caller's connection, which cannot be another's by the time polkit looks: unique names are never given
//! twice.

use std::collections::HashMap;
use std::time::Duration;

use headstart_shared::bus::BusError;
use zbus::message::{Flags, Header};
use zbus::proxy::CacheProperties;
use zbus::{Connection, fdo};
use zbus_polkit::policykit1::{AuthorityProxy, CheckAuthorizationFlags, Subject};

/// How long a person may take to type a password.
const WITH_PERSON: Duration = Duration::from_mins(3);
/// How long polkit may take when it asks nobody.
const WITHOUT: Duration = Duration::from_secs(20);

/// Checks that the sender of a message, a user, may do something (`shared::bus::names::action`).
///
/// # Errors
/// [`BusError::NotAuthorized`], which names the action.
pub async fn check(
    connection: &Connection,
    header: &Header<'_>,
    uid: u32,
    action: &str,
) -> Result<(), BusError> {
    if uid == 0 {
        return Ok(());
    }
    let interactive = header.primary().flags().contains(Flags::ALLOW_INTERACTIVE_AUTH);
    let patience = if interactive { WITH_PERSON } else { WITHOUT };
    match tokio::time::timeout(patience, ask(connection, header, action, interactive)).await {
        Ok(Ok(answer)) => answer.into_result(action),
        Ok(Err(error)) => Err(BusError::NotAuthorized(no_polkit(action, &error))),
        Err(_) => {
            Err(BusError::NotAuthorized(format!("{action}: polkit does not answer; try again, or as root")))
        }
    }
}

/// What polkit said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    /// Yes, if somebody may be asked for a password.
    AfterAsking,
}

impl Answer {
    fn into_result(self, action: &str) -> Result<(), BusError> {
        let why = match self {
            Self::Yes => return Ok(()),
            Self::No => "polkit does not allow it; an administrator can, or do it as root",
            Self::AfterAsking => "polkit wants a password for it, and nobody could be asked; do it as root",
        };
        Err(BusError::NotAuthorized(format!("{action}: {why}")))
    }
}

async fn ask(
    connection: &Connection,
    header: &Header<'_>,
    action: &str,
    interactive: bool,
) -> zbus::Result<Answer> {
    let subject = Subject::new_for_message_header(header).map_err(|e| zbus::Error::Failure(e.to_string()))?;
    let flags = if interactive {
        CheckAuthorizationFlags::ALLOW_USER_INTERACTION
    } else {
        CheckAuthorizationFlags::empty()
    };
    let authority = AuthorityProxy::builder(connection).cache_properties(CacheProperties::No).build().await?;
    let result = authority.check_authorization(&subject, action, &HashMap::new(), flags, "").await?;
    Ok(match (result.is_authorized, result.is_challenge) {
        (true, _) => Answer::Yes,
        (false, true) => Answer::AfterAsking,
        (false, false) => Answer::No,
    })
}

fn no_polkit(action: &str, error: &zbus::Error) -> String {
    match error {
        zbus::Error::FDO(e)
            if matches!(**e, fdo::Error::ServiceUnknown(_) | fdo::Error::NameHasNoOwner(_)) =>
        {
            format!("{action}: there is no polkit to ask; install it, or do it as root")
        }
        error => format!("{action}: polkit could not be asked ({error}); do it as root"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_is_a_yes_and_each_no_names_the_action() {
        assert!(Answer::Yes.into_result("a.b.c").is_ok());
        for answer in [Answer::No, Answer::AfterAsking] {
            let refused = answer.into_result("a.b.c").expect_err("refused");
            assert!(matches!(&refused, BusError::NotAuthorized(text) if text.starts_with("a.b.c: ")));
        }
    }
}
