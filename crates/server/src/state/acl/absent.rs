//! Commands of Redis 8.0.2 that are not here: those of replication, of the cluster and of vector sets.
//!
//! The rules of users may name them all the same, and say the same of them as in Redis: what is kept of users
//! was written for Redis (`+psync +replconf +ping`, `+@all -cluster`), and a server that refused such a rule
//! would not start with that file. The commands themselves stay unknown, and COMMAND and ACL CAT leave them
//! out.
use super::catalog::Known;
use command::Acl;

struct Absent {
    name: &'static str,
    categories: Acl,
    subcommands: &'static [(Acl, &'static [&'static str])],
}

const ADMIN: Acl = Acl::ADMIN.or(Acl::SLOW).or(Acl::DANGEROUS);
const CONNECTION: Acl = Acl::FAST.or(Acl::CONNECTION);

const fn absent(name: &'static str, categories: Acl) -> Absent {
    Absent { name, categories, subcommands: &[] }
}

const CLUSTER: Absent = Absent {
    name: "cluster",
    categories: Acl::SLOW,
    subcommands: &[
        (
            Acl::SLOW,
            &[
                "countkeysinslot",
                "getkeysinslot",
                "help",
                "info",
                "keyslot",
                "links",
                "myid",
                "myshardid",
                "nodes",
                "shards",
                "slots",
            ],
        ),
        (
            ADMIN,
            &[
                "addslots",
                "addslotsrange",
                "bumpepoch",
                "count-failure-reports",
                "delslots",
                "delslotsrange",
                "failover",
                "flushslots",
                "forget",
                "meet",
                "replicas",
                "replicate",
                "reset",
                "saveconfig",
                "set-config-epoch",
                "setslot",
                "slaves",
            ],
        ),
    ],
};

/// The commands of a module have the categories that it names, which are none.
const ABSENT: &[Absent] = &[
    absent("asking", CONNECTION),
    CLUSTER,
    absent("failover", ADMIN),
    absent("psync", ADMIN),
    absent("readonly", CONNECTION),
    absent("readwrite", CONNECTION),
    absent("replconf", ADMIN),
    absent("sync", ADMIN),
    absent("vadd", Acl::NONE),
    absent("vcard", Acl::NONE),
    absent("vdim", Acl::NONE),
    absent("vemb", Acl::NONE),
    absent("vgetattr", Acl::NONE),
    absent("vinfo", Acl::NONE),
    absent("vismember", Acl::NONE),
    absent("vlinks", Acl::NONE),
    absent("vrandmember", Acl::NONE),
    absent("vrem", Acl::NONE),
    absent("vsetattr", Acl::NONE),
    absent("vsim", Acl::NONE),
];

/// The names of all of them, in lower case.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ABSENT.iter().map(|absent| absent.name)
}

/// All of them with their subcommands, of which the first gets the number `first`.
pub(super) fn known(first: usize) -> Vec<Known> {
    let mut all = Vec::new();
    for absent in ABSENT {
        let parts = absent.subcommands.iter().flat_map(|(acl, names)| names.iter().map(|name| (*acl, *name)));
        let number = first + all.len() + 1;
        let subcommands = number..number + parts.clone().count();
        all.push(Known { name: absent.name.into(), categories: absent.categories, subcommands });
        all.extend(parts.map(|(categories, name)| Known {
            name: format!("{}|{name}", absent.name),
            categories,
            subcommands: 0..0,
        }));
    }
    all
}
