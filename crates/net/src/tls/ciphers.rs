//! `tls-ciphers` and `tls-ciphersuites`: from OpenSSL's words to the cipher suites that rustls has.
//!
//! The suites of TLS 1.3 are named one by one. Those of TLS 1.2 are chosen by a list in OpenSSL's language,
//! whose words are separated by colons, commas or spaces:
//!
//! ```text
//! ECDHE-RSA-AES128-GCM-SHA256    one suite, behind those chosen before
//! ECDHE+AESGCM                   all that are both
//! +AES256                        those of the chosen that are, to the end
//! -ECDSA                         those of the chosen that are, out
//! !CHACHA20                      out, whatever follows
//! @STRENGTH  @SECLEVEL=2         change nothing: all that there are are strong
//! ```
//!
//! A word that nobody knows chooses nothing, as in OpenSSL: lists are written for many versions of it. A list
//! that leaves nothing is an error.
use rustls::SupportedCipherSuite::{self, Tls12};
use rustls::Tls12CipherSuite;
use rustls::crypto::CipherSuiteCommon;
use rustls::crypto::aws_lc_rs::cipher_suite as suite;

/// A suite with its names, the first of which is OpenSSL's, and what else means it.
struct Named {
    suite: SupportedCipherSuite,
    names: &'static [&'static str],
    groups: &'static [&'static str],
}

/// A suite of TLS 1.2 without rustls's limit of 2^24 records for a connection. Beyond that it closes the
/// connection, and the reply that comes then is lost; a busy client is there in an hour. TLS 1.3 renews its
/// keys there, which TLS 1.2 cannot. No nonce comes twice, because they count up in 64 bits. OpenSSL has no
/// such limit.
const fn without_limit(suite: SupportedCipherSuite) -> Tls12CipherSuite {
    let Tls12(limited) = suite else { panic!("a suite of TLS 1.3 among those of TLS 1.2") };
    let common = CipherSuiteCommon { confidentiality_limit: u64::MAX, ..limited.common };
    Tls12CipherSuite { common, ..*limited }
}

const TLS12: [Named; 6] = [
    Named {
        suite: Tls12(&const { without_limit(suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384) }),
        names: &["ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"],
        groups: &["aECDSA", "ECDSA", "AESGCM", "AES256", "AES", "SHA384", "SUITEB128", "SUITEB192"],
    },
    Named {
        suite: Tls12(&const { without_limit(suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384) }),
        names: &["ECDHE-RSA-AES256-GCM-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"],
        groups: &["aRSA", "AESGCM", "AES256", "AES", "SHA384"],
    },
    Named {
        suite: Tls12(&const { without_limit(suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256) }),
        names: &["ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"],
        groups: &["aECDSA", "ECDSA", "CHACHA20"],
    },
    Named {
        suite: Tls12(&const { without_limit(suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256) }),
        names: &["ECDHE-RSA-CHACHA20-POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"],
        groups: &["aRSA", "CHACHA20"],
    },
    Named {
        suite: Tls12(&const { without_limit(suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256) }),
        names: &["ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"],
        groups: &["aECDSA", "ECDSA", "AESGCM", "AES128", "AES", "SHA256", "SUITEB128", "SUITEB128ONLY"],
    },
    Named {
        suite: Tls12(&const { without_limit(suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256) }),
        names: &["ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
        groups: &["aRSA", "AESGCM", "AES128", "AES", "SHA256"],
    },
];

/// What means every suite of TLS 1.2 that there is.
const ALL: [&str; 10] =
    ["ALL", "DEFAULT", "HIGH", "FIPS", "ECDHE", "EECDH", "kECDHE", "kEECDH", "ECDH", "TLSv1.2"];

const TLS13: [Named; 3] = [
    Named { suite: suite::TLS13_AES_256_GCM_SHA384, names: &["TLS_AES_256_GCM_SHA384"], groups: &[] },
    Named {
        suite: suite::TLS13_CHACHA20_POLY1305_SHA256,
        names: &["TLS_CHACHA20_POLY1305_SHA256"],
        groups: &[],
    },
    Named { suite: suite::TLS13_AES_128_GCM_SHA256, names: &["TLS_AES_128_GCM_SHA256"], groups: &[] },
];
/// Suites of TLS 1.3 that OpenSSL has and rustls has not: lists may name them, and they are passed over.
const NOT_HERE: [&str; 2] = ["TLS_AES_128_CCM_SHA256", "TLS_AES_128_CCM_8_SHA256"];

/// The suites of both lists, the preferred ones first; an empty list chooses all. An error is a line for the
/// log.
pub(super) fn chosen(ciphers: &str, ciphersuites: &str) -> Result<Vec<SupportedCipherSuite>, String> {
    let mut suites = of_tls13(ciphersuites)?;
    suites.extend(of_tls12(ciphers)?);
    Ok(suites)
}

fn of_tls13(list: &str) -> Result<Vec<SupportedCipherSuite>, String> {
    if list.is_empty() {
        return Ok(TLS13.iter().map(|named| named.suite).collect());
    }
    let failed = |why: &str| format!("Failed to configure ciphersuites: {list} ({why})");
    let mut suites = Vec::new();
    for word in list.split(':').filter(|word| !NOT_HERE.contains(word)) {
        let known = TLS13.iter().find(|named| named.is(word));
        suites.push(known.ok_or_else(|| failed(&format!("there is no '{word}'")))?.suite);
    }
    if suites.is_empty() { Err(failed("none is AES-GCM or ChaCha20-Poly1305")) } else { Ok(suites) }
}

fn of_tls12(list: &str) -> Result<Vec<SupportedCipherSuite>, String> {
    let mut chosen: Vec<usize> = Vec::new();
    let mut never: Vec<usize> = Vec::new();
    let list_or_all = if list.is_empty() { "ALL" } else { list };
    for word in list_or_all.split([':', ',', ' ', ';']).filter(|w| !w.is_empty() && !w.starts_with('@')) {
        let (operator, rest) = match word.split_at_checked(1) {
            Some((operator @ ("!" | "-" | "+"), rest)) => (operator, rest),
            _ => ("", word),
        };
        let meant: Vec<usize> = (0..TLS12.len()).filter(|n| TLS12[*n].is(rest)).collect();
        match operator {
            "!" => never.extend(&meant),
            "-" => chosen.retain(|n| !meant.contains(n)),
            "+" => chosen.sort_by_key(|n| meant.contains(n)),
            _ => chosen.extend(meant.into_iter().filter(|n| !chosen.contains(n)).collect::<Vec<_>>()),
        }
        chosen.retain(|n| !never.contains(n));
    }
    match chosen.is_empty() {
        true => Err(format!(
            "Failed to configure ciphers: {list} (none is ECDHE with AES-GCM or ChaCha20-Poly1305)"
        )),
        false => Ok(chosen.into_iter().map(|n| TLS12[n].suite).collect()),
    }
}

impl Named {
    /// Whether a word means this suite: its name, or groups joined by `+`, all of which it is in.
    fn is(&self, word: &str) -> bool {
        let is_in =
            |group: &str| self.names.contains(&group) || self.groups.contains(&group) || ALL.contains(&group);
        word.split('+').all(is_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &str) -> Vec<&'static str> {
        let suites = of_tls12(list).unwrap_or_default();
        let named = |s: &SupportedCipherSuite| TLS12.iter().find(|n| n.suite == *s).unwrap().names[0];
        suites.iter().map(named).collect()
    }

    #[test]
    fn connections_of_tls_1_2_do_not_end_after_so_many_records() {
        for suite in of_tls12("").unwrap().into_iter().chain(of_tls12("AES128").unwrap()) {
            let Tls12(suite) = suite else { panic!("{suite:?}") };
            assert_eq!(suite.common.confidentiality_limit, u64::MAX, "{:?}", suite.common.suite);
        }
    }

    #[test]
    fn words_choose_order_and_exclude() {
        assert_eq!(names("").len(), 6);
        assert_eq!(names("DEFAULT:!MEDIUM").len(), 6);
        assert_eq!(names("ECDHE+CHACHA20").len(), 2);
        assert_eq!(
            names("ALL:-ECDSA:!AES256"),
            ["ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-RSA-AES128-GCM-SHA256"]
        );
        assert_eq!(names("aRSA:+AES256").last(), Some(&"ECDHE-RSA-AES256-GCM-SHA384"));
        assert_eq!(
            names("!aRSA ECDHE-RSA-AES128-GCM-SHA256,ECDHE-ECDSA-AES128-GCM-SHA256 @SECLEVEL=2"),
            ["ECDHE-ECDSA-AES128-GCM-SHA256"]
        );
        assert_eq!(names("nonsense:TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), ["ECDHE-RSA-AES128-GCM-SHA256"]);
    }

    #[test]
    fn a_list_that_leaves_nothing_is_an_error() {
        for list in ["zz", "AES128-SHA", "ALL:!ALL", ":", "!ALL"] {
            let told = of_tls12(list).unwrap_err();
            assert!(
                told.starts_with(&format!("Failed to configure ciphers: {list} (none is ECDHE ")),
                "{told}"
            );
        }
        for list in ["zz", "TLS_AES_128_CCM_SHA256", "TLS_AES_128_GCM_SHA256:zz"] {
            let told = of_tls13(list).unwrap_err();
            assert!(told.starts_with(&format!("Failed to configure ciphersuites: {list} (")), "{told}");
        }
        let two =
            of_tls13("TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_CCM_SHA256:TLS_AES_128_GCM_SHA256").unwrap();
        assert_eq!(two, [TLS13[1].suite, TLS13[2].suite]);
    }
}
