//! The names that BY and GET make of an element: `weight_*` and `object_*->price`.
use store::{Key, View};

/// A pattern with a `*`, where the element goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern<'a> {
    before: &'a [u8],
    after: &'a [u8],
    /// Of a hash: what follows `->` behind the star.
    pub(super) field: Option<&'a [u8]>,
}

/// Appends the value of a key, or of a field of it, if there is one; whether there is.
pub(super) type Lookup<'l> = dyn FnMut(&[u8], Option<&[u8]>, &mut Vec<u8>) -> bool + 'l;

impl<'a> Pattern<'a> {
    /// None without a star. An arrow with nothing behind it belongs to the name.
    pub(super) fn new(text: &'a [u8]) -> Option<Pattern<'a>> {
        let star = text.iter().position(|byte| *byte == b'*')?;
        let (before, after) = (&text[..star], &text[star + 1..]);
        let arrow = after.windows(2).position(|pair| pair == b"->").filter(|at| at + 2 < after.len());
        Some(match arrow {
            Some(at) => Pattern { before, after: &after[..at], field: Some(&after[at + 2..]) },
            None => Pattern { before, after, field: None },
        })
    }

    /// The key for `element`, written into `name`.
    pub(super) fn name<'n>(&self, element: &[u8], name: &'n mut Vec<u8>) -> &'n [u8] {
        name.clear();
        [self.before, element, self.after].iter().for_each(|part| name.extend_from_slice(part));
        name
    }
}

/// The lookup on a locked key. A value of another type is as good as none.
pub(super) fn append_value(
    view: &mut View<'_>,
    key: &Key<'_>,
    field: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> bool {
    let found = match field {
        None => view.string(key).ok().flatten(),
        Some(field) => view.hash(key).ok().flatten().and_then(|hash| hash.get(field)),
    };
    found.inspect(|text| text.append_to(out)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(pattern: &str, element: &str) -> Option<(String, Option<String>)> {
        let pattern = Pattern::new(pattern.as_bytes())?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Some((text(pattern.name(element.as_bytes(), &mut Vec::new())), pattern.field.map(text)))
    }

    #[test]
    fn the_first_star_is_the_element_and_an_arrow_behind_it_leads_to_a_field() {
        let named = |name: &str, field: Option<&str>| Some((name.to_owned(), field.map(str::to_owned)));
        assert_eq!(name("w_*", "7"), named("w_7", None));
        assert_eq!(name("*", "7"), named("7", None));
        assert_eq!(name("a*b*c", "7"), named("a7b*c", None));
        assert_eq!(name("o_*->price", "7"), named("o_7", Some("price")));
        assert_eq!(name("o_*_x->f->g", "7"), named("o_7_x", Some("f->g")));
        assert_eq!(name("o_*->", "7"), named("o_7->", None));
        assert_eq!(name("a->b*", "7"), named("a->b7", None));
        assert_eq!(name("o->f", "7"), None);
        assert_eq!(name("", "7"), None);
    }
}
