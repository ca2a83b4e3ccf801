//! The builds that the matrix compares: the release profile, and what is changed in each of the others.

/// One build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) name: String,
    /// Changes of the release profile, as `--config` takes them.
    pub(crate) profile: Vec<String>,
    /// Features of the crate `tools`.
    pub(crate) features: Vec<&'static str>,
    pub(crate) target_cpu: Option<&'static str>,
    pub(crate) is_profiled: bool,
}

/// What the others are compared with.
pub(crate) const BASE: &str = "release";

/// A choice in one dimension: its name, and what it does to a build. The first of each dimension is the
/// release profile's.
type Choice = (&'static str, fn(&mut Variant));

const OPT_LEVELS: [Choice; 3] = [
    ("", |_| {}),
    ("opt-2", |variant| variant.profile.push("profile.release.opt-level=2".into())),
    ("opt-s", |variant| variant.profile.push("profile.release.opt-level=\"s\"".into())),
];
const LTO: [Choice; 3] = [
    ("", |_| {}),
    ("lto-thin", |variant| variant.profile.push("profile.release.lto=\"thin\"".into())),
    ("lto-off", |variant| variant.profile.push("profile.release.lto=\"off\"".into())),
];
const ALLOCATORS: [Choice; 3] = [
    ("", |_| {}),
    ("jemalloc", |variant| variant.features.push("jemalloc")),
    ("mimalloc", |variant| variant.features.push("mimalloc")),
];
const TARGETS: [Choice; 3] = [
    ("", |_| {}),
    ("cpu-v3", |variant| variant.target_cpu = Some("x86-64-v3")),
    ("cpu-native", |variant| variant.target_cpu = Some("native")),
];
const PROFILING: [Choice; 2] = [("", |_| {}), ("pgo", |variant| variant.is_profiled = true)];
const DIMENSIONS: [&[Choice]; 5] = [&OPT_LEVELS, &LTO, &ALLOCATORS, &TARGETS, &PROFILING];

/// The release profile, and each build that changes it in one dimension. Last a profile-guided build for this
/// very processor, which changes two.
pub(crate) fn star() -> Vec<Variant> {
    let mut variants = vec![built_from(&[])];
    for choice in DIMENSIONS.into_iter().flatten().filter(|choice| !choice.0.is_empty()) {
        variants.push(built_from(&[choice]));
    }
    variants.push(built_from(&[&TARGETS[2], &PROFILING[1]]));
    variants
}

/// Every combination: 162 builds, for a night.
pub(crate) fn product() -> Vec<Variant> {
    let mut combinations: Vec<Vec<&Choice>> = vec![Vec::new()];
    for dimension in DIMENSIONS {
        let with = |chosen: &Vec<&'static Choice>| -> Vec<Vec<&'static Choice>> {
            dimension.iter().map(|choice| [&chosen[..], &[choice]].concat()).collect()
        };
        combinations = combinations.iter().flat_map(with).collect();
    }
    combinations.iter().map(|choices| built_from(choices)).collect()
}

fn built_from(choices: &[&Choice]) -> Variant {
    let mut variant = Variant::default();
    choices.iter().for_each(|(_, change)| change(&mut variant));
    let names: Vec<&str> = choices.iter().map(|choice| choice.0).filter(|name| !name.is_empty()).collect();
    variant.name = if names.is_empty() { BASE.into() } else { names.join("+") };
    variant
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn names(variants: &[Variant]) -> BTreeSet<&str> {
        variants.iter().map(|variant| variant.name.as_str()).collect()
    }

    #[test]
    fn the_star_begins_with_the_release_profile_and_changes_one_thing_at_a_time() {
        let star = star();
        assert_eq!(star[0], Variant { name: BASE.into(), ..Variant::default() });
        assert_eq!(names(&star).len(), star.len());
        for name in ["opt-s", "lto-off", "mimalloc", "cpu-v3", "pgo", "cpu-native+pgo"] {
            assert!(names(&star).contains(name), "{name}");
        }
    }

    #[test]
    fn the_product_has_every_combination_once() {
        let product = product();
        assert_eq!(product.len(), 162);
        assert_eq!(names(&product).len(), 162);
        assert!(names(&product).contains("opt-2+lto-thin+jemalloc+cpu-v3+pgo"));
    }
}
