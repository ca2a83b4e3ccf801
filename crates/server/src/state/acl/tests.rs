//! Users from random rules: the text of a user is read back as the same user, and nothing panics.
use super::*;
use crate::state::config::{ChannelDefault, UserLine, merged, words};
use base::random::Random;
use command::Acl;

/// A container with two subcommands, and three commands.
fn catalog() -> Catalog {
    let known =
        |name: &str, categories: Acl, subcommands| Known { name: name.into(), categories, subcommands };
    Catalog::new(vec![
        known("get", Acl::READ.or(Acl::FAST), 1..1),
        known("config", Acl::SLOW, 2..4),
        known("config|get", Acl::ADMIN.or(Acl::SLOW), 3..3),
        known("config|set", Acl::ADMIN.or(Acl::SLOW), 4..4),
        known("select", Acl::FAST, 5..5),
        known("set", Acl::WRITE.or(Acl::SLOW), 6..6),
    ])
}

const PIECES: &[&str] = &[
    "on",
    "off",
    "nopass",
    "resetpass",
    ">p",
    ">q",
    "<p",
    "allkeys",
    "resetkeys",
    "~a*",
    "~b",
    "%R~a*",
    "%W~c",
    "%R",
    "%RW~d\"",
    "%RW~*",
    "~(x)",
    "~'",
    "&a",
    "&*",
    "&b)",
    "resetchannels",
    "allchannels",
    "+@all",
    "-@all",
    "+get",
    "-get",
    "+config",
    "-config",
    "+config|get",
    "-config|set",
    "+select|0",
    "+select|A",
    "+SELECT",
    "-select",
    "+@read",
    "-@fast",
    "+@slow",
    "+@admin",
    "-@ADMIN",
    "(",
    ")",
    "(+get",
    "~x)",
    "(~a +set)",
    "(%R~q &c +@all -get)",
    "()",
    "(\"~a)\" +get)",
    "clearselectors",
    "reset",
    "skip-sanitize-payload",
    "sanitize-payload",
    "",
    "+nope",
    "~a b",
    "#e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "\u{1}",
    "+select|a b",
    "%~",
    "!x",
];

/// One of the requests that the catalog's commands can be.
fn wanted<'a>(
    random: &mut Random,
    keys: &'a mut Vec<KeyUse<'a>>,
    channels: &'a mut Vec<ChannelUse<'a>>,
) -> Wanted<'a> {
    const NAMES: [&[u8]; 8] = [b"a", b"ab", b"b", b"c", b"x", b"d\"", b"(x)", b"q"];
    let mut name = || NAMES[random.below(8) as usize];
    keys.push(KeyUse { name: name(), position: 1, reads: false, writes: false });
    channels.push(ChannelUse { name: name(), position: 2, is_pattern: false });
    (keys[0].reads, keys[0].writes) = (random.below(2) == 0, random.below(2) == 0);
    channels[0].is_pattern = random.below(2) == 0;
    let (keys, channels) = (&keys[..random.below(2) as usize], &channels[..random.below(2) as usize]);
    let first_arg = [None, Some(&b"0"[..]), Some(b"a")][random.below(3) as usize];
    Wanted { command: random.below(6) as usize, is_free: false, first_arg, keys, channels }
}

/// The same user, as far as anybody can tell.
fn assert_same(one: &User, other: &User, random: &mut Random, round: usize) {
    assert_eq!(one.line(), other.line(), "round {round}");
    for _ in 0..20 {
        let (mut keys, mut channels) = (Vec::new(), Vec::new());
        let wanted = wanted(random, &mut keys, &mut channels);
        let line = String::from_utf8_lossy(&one.line()).into_owned();
        assert_eq!(one.check(&wanted), other.check(&wanted), "round {round}: {wanted:?} by {line}");
    }
}

#[test]
fn what_is_written_of_a_user_is_read_back_as_the_same_user() {
    let catalog = catalog();
    let mut random = Random::new(5);
    for round in 0..6_000 {
        let channels = [ChannelDefault::All, ChannelDefault::None][random.below(2) as usize];
        let rules = Rules { catalog: &catalog, channels };
        let mut users = Users::new(b"", &rules);
        for _ in 0..random.below(12) {
            let count = 1 + random.below(3);
            let words: Vec<&str> =
                (0..count).map(|_| PIECES[random.below(PIECES.len() as u64) as usize]).collect();
            let Ok(all) = merged(words.iter().map(|w| w.as_bytes())) else { continue };
            let before = users.find(b"u").map(|user| user.line());
            if users.set(b"u", &all, &rules).is_err() {
                assert_eq!(users.find(b"u").map(|user| user.line()), before, "all of it or nothing");
            }
        }
        let Some(user) = users.find(b"u") else { continue };
        // From the ACL file, and from the configuration, where what is written is read with quotes.
        let again = file::read(&file::written(&users), "f", &users, &rules).unwrap();
        assert_same(user, again.find(b"u").unwrap(), &mut random, round);
        let mut declared = Users::new(b"", &Rules { channels: ChannelDefault::All, ..rules });
        for line in file::lines(&users) {
            let words = words(&line).expect("quotes close");
            let all = merged(words[2..].iter().map(Vec::as_slice)).expect("parentheses close");
            let line = UserLine { name: words[1].clone(), rules: all };
            file::check(&line, &rules).unwrap();
            declared.declare(&line, &rules).unwrap();
        }
        assert_same(user, declared.find(b"u").unwrap(), &mut random, round);
        assert_eq!(declared.default_user().line(), users.default_user().line());
    }
}

#[test]
fn a_file_is_in_force_as_a_whole_and_everything_that_is_wrong_with_it_is_told() {
    let catalog = catalog();
    let rules = Rules { catalog: &catalog, channels: ChannelDefault::None };
    let present = Users::new(b"secret", &rules);
    let text = b"user a on\nuser a off\nfoo\nuser\nuser b on +foo zzz #a\nuser c (+get\nuser d on \"x\n  \n\
        # comment\nuser \"a b\" on\nuser e\t on\nUSER f on\n";
    let faults = file::read(text, "f", &present, &rules).err().unwrap();
    let keyword = "should start with user keyword followed by the username.";
    assert_eq!(
        String::from_utf8(faults).unwrap(),
        format!(
            "WARNING: Duplicate user 'a' found on line 2. f:3 {keyword} f:4 {keyword} f:5: Error in applying \
             operation '+foo': Unknown command or category name in ACL. f:5: Syntax error. f:6: Unmatched \
             parenthesis in selector definition.f:7: Syntax error. f:9 {keyword} f:10: Syntax error. 'f:11: \
             username 'e\t' contains invalid characters. f:12 {keyword} WARNING: ACL errors detected, no \
             change to the previously active ACL rules was performed"
        )
    );
    let users = file::read(b"user b on (+get ~a) \t\r\n\n", "f", &present, &rules).unwrap();
    let names: Vec<&[u8]> = users.all().map(|user| user.name()).collect();
    assert_eq!(names, [&b"b"[..], b"default"]);
    assert!(users.default_user().is_nopass(), "a file that does not name the default user frees it");
    assert!(users.renewed(present.default_user()).is_some(), "and it is the same user");
}

#[test]
fn a_file_that_holds_a_nul_is_refused_wherever_it_stands() {
    let catalog = catalog();
    let rules = Rules { catalog: &catalog, channels: ChannelDefault::None };
    let present = Users::new(b"secret", &rules);
    for (text, line) in [
        (&b"user a on\0 x\nuser b on\n"[..], 1),
        (b"\0user a on\nuser b on\n", 1),
        (b"user a on\nuser b on\n\0", 3),
        (b"user a on\n\0\0\0\0\nuser b on\n", 2),
        (b"user a on\nuser b\0c on\n", 2),
    ] {
        let faults = file::read(text, "f", &present, &rules).err().unwrap();
        let faults = String::from_utf8(faults).unwrap();
        assert!(faults.starts_with(&format!("f:{line}: there is a NUL in the line. WARNING")), "{faults}");
    }
}

#[test]
fn a_user_who_is_made_anew_is_another_one() {
    let catalog = catalog();
    let rules = Rules { catalog: &catalog, channels: ChannelDefault::None };
    let mut users = Users::new(b"", &rules);
    users.set(b"u", &[b"on".to_vec()], &rules).unwrap();
    let before = std::sync::Arc::clone(users.find(b"u").unwrap());
    users.set(b"u", &[b"off".to_vec()], &rules).unwrap();
    assert!(users.renewed(&before).is_some_and(|user| !user.is_on()));
    assert!(users.remove(b"u") && users.renewed(&before).is_none());
    users.set(b"u", &[b"on".to_vec()], &rules).unwrap();
    assert!(users.renewed(&before).is_none());
}

#[test]
fn whoever_may_do_everything_is_known() {
    let catalog = catalog();
    let rules = Rules { catalog: &catalog, channels: ChannelDefault::None };
    let may = |words: &str| {
        let mut users = Users::new(b"", &rules);
        let all = merged(words.split(' ').map(str::as_bytes)).unwrap();
        users.set(b"u", &all, &rules).unwrap();
        users.find(b"u").unwrap().may_do_everything()
    };
    assert!(may("allkeys allchannels allcommands"));
    assert!(may("+get (~* &* +@all)"));
    for less in ["~* &* +@all -get", "~* &a +@all", "%R~* &* +@all", "~* +@all", "~* &* +get"] {
        assert!(!may(less), "{less}");
    }
}
