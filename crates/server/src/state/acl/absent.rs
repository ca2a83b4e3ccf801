//! Commands of Redis 8.0.2 that are not here: those of replication and of vector sets.
//!
//! The rules of users may name them all the same, and say the same of them as in Redis: what is kept of users
//! was written for Redis (`+psync +replconf +ping`, `+@all -sync`), and a server that refused such a rule
//! would not start with that file. The commands themselves stay unknown, and COMMAND and ACL CAT leave them
//! out.
use super::catalog::Known;
use command::Acl;

const ADMIN: Acl = Acl::ADMIN.or(Acl::SLOW).or(Acl::DANGEROUS);

/// Each with its categories. The commands of a module have those that it names, which are none.
const ABSENT: &[(&str, Acl)] = &[
    ("failover", ADMIN),
    ("psync", ADMIN),
    ("replconf", ADMIN),
    ("sync", ADMIN),
    ("vadd", Acl::NONE),
    ("vcard", Acl::NONE),
    ("vdim", Acl::NONE),
    ("vemb", Acl::NONE),
    ("vgetattr", Acl::NONE),
    ("vinfo", Acl::NONE),
    ("vismember", Acl::NONE),
    ("vlinks", Acl::NONE),
    ("vrandmember", Acl::NONE),
    ("vrem", Acl::NONE),
    ("vsetattr", Acl::NONE),
    ("vsim", Acl::NONE),
];

/// The names of all of them, in lower case.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ABSENT.iter().map(|(name, _)| *name)
}

/// All of them, for the catalog.
pub(super) fn known() -> impl Iterator<Item = Known> {
    ABSENT.iter().map(|&(name, categories)| Known { name: name.into(), categories, subcommands: 0..0 })
}
