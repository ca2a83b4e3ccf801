//! Publish and subscribe: the commands. `subscribe` begins and ends subscriptions, `publish` sends a message,
//! `report` is PUBSUB. Who listens to what is kept in `state/pubsub`, what one client listens to in
//! `core/subscriptions.rs`; the worker delivers what was published (`worker/push.rs`).
mod publish;
mod report;
mod subscribe;

use crate::core::call::ServerCommand;
use command::{Doc, Group};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[
    &publish::PUBLISH,
    &publish::SPUBLISH,
    &report::PUBSUB,
    &subscribe::PSUBSCRIBE,
    &subscribe::PUNSUBSCRIBE,
    &subscribe::SSUBSCRIBE,
    &subscribe::SUBSCRIBE,
    &subscribe::SUNSUBSCRIBE,
    &subscribe::UNSUBSCRIBE,
]);

/// What the rows' documentation has in common.
const ABOUT: Doc = Doc { group: Group::Pubsub, since: "2.0.0", ..Doc::NEW };
