//! JSON, to be written: what a measurement leaves behind for other programs and for the page. Nothing here reads it.
use std::fmt::{self, Write};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Text(String),
    /// What is not finite is written as null, which JSON has instead.
    Number(f64),
    Bool(bool),
    List(Vec<Json>),
    /// In this order.
    Map(Vec<(&'static str, Json)>),
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_string())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::Text(text)
    }
}

impl From<f64> for Json {
    fn from(number: f64) -> Json {
        Json::Number(number)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Text(text) => write_text(text, f),
            Json::Number(number) if number.is_finite() => write!(f, "{number}"),
            Json::Number(_) => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::List(items) => write_list(items, f),
            Json::Map(fields) => write_map(fields, f),
        }
    }
}

/// A line for each item, so that two files can be compared by eye.
fn write_list(items: &[Json], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('[')?;
    for (index, item) in items.iter().enumerate() {
        write!(f, "{}\n{item}", if index == 0 { "" } else { "," })?;
    }
    f.write_str(if items.is_empty() { "]" } else { "\n]" })
}

fn write_map(fields: &[(&'static str, Json)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('{')?;
    for (index, (name, value)) in fields.iter().enumerate() {
        f.write_str(if index == 0 { "" } else { ", " })?;
        write_text(name, f)?;
        write!(f, ": {value}")?;
    }
    f.write_char('}')
}

/// `<` is escaped too: the text may stand inside a page's script element.
fn write_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            c if c < ' ' || c == '<' || c == '\u{2028}' || c == '\u{2029}' => {
                write!(f, "\\u{:04x}", c as u32)?
            }
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_json_has_them() {
        let list = Json::List(vec![Json::Number(1.5), Json::Number(f64::NAN), Json::Bool(true)]);
        let map = Json::Map(vec![("a", list), ("b", Json::List(Vec::new())), ("c", "x".into())]);
        assert_eq!(map.to_string(), "{\"a\": [\n1.5,\nnull,\ntrue\n], \"b\": [], \"c\": \"x\"}");
        assert_eq!(Json::Number(1e21).to_string(), "1000000000000000000000");
    }

    #[test]
    fn text_cannot_leave_its_quotes_or_a_script_element() {
        assert_eq!(Json::from("a\"b\\c\n\u{1}é").to_string(), "\"a\\\"b\\\\c\\n\\u0001é\"");
        assert_eq!(Json::from("</script>").to_string(), "\"\\u003c/script>\"");
    }
}
