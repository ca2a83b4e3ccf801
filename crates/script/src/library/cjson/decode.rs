//! JSON as Lua values. Arrays and objects wait on a list while what is in them is read, so that how deep
//! they nest is no matter of the thread's stack.
use super::number::parse_front;
use super::{Codec, DEPTH_MAX, Invalid};
use crate::library::given::Given;
use mlua::{Error, Result, Table, Value};

/// A word of JSON.
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    /// What cannot be a word, and why.
    Fault(&'static str),
}

impl Token {
    /// As errors name it.
    fn name(&self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::String(_) => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Fault(why) => why,
        }
    }
}

struct Decoder<'a> {
    given: &'a Given<'a>,
    codec: &'a Codec,
    text: &'a [u8],
    at: usize,
    /// Where the last token began, or where its fault was found.
    index: usize,
    keeps_invalid: bool,
    depth_max: usize,
}

/// An array or object whose elements are being read.
struct Open {
    table: Table,
    /// The name of the member that is read; None in an array.
    key: Option<Vec<u8>>,
    count: i64,
}

pub(super) fn decode(given: &Given<'_>, codec: &Codec) -> Result<Value> {
    if given.len() != 1 {
        return Err(given.bad(0, "expected 1 argument"));
    }
    let text = given.string(0)?;
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err(given.fail("JSON parser does not support UTF-16 or UTF-32"));
    }
    let settings = codec.settings.get();
    let mut decoder = Decoder {
        given,
        codec,
        text: &text,
        at: 0,
        index: 0,
        keeps_invalid: settings.decode_invalid != Invalid::Refused,
        depth_max: settings.decode_depth_max.min(DEPTH_MAX) as usize,
    };
    let value = decoder.document()?;
    match decoder.token() {
        Token::End => Ok(value),
        other => Err(decoder.unexpected("the end", &other)),
    }
}

impl Decoder<'_> {
    fn unexpected(&self, expected: &str, found: &Token) -> Error {
        let (found, place) = (found.name(), self.index + 1);
        self.given.fail(format!("Expected {expected} but found {found} at character {place}"))
    }

    fn document(&mut self) -> Result<Value> {
        let mut open: Vec<Open> = Vec::new();
        let mut token = self.token();
        loop {
            self.codec.state.steps(1)?;
            let begun = match token {
                Token::ObjectBegin => self.object(&mut open)?,
                Token::ArrayBegin => self.array(&mut open)?,
                other => Begun::Value(self.scalar(other)?),
            };
            let mut value = match begun {
                Begun::Value(value) => value,
                Begun::Open(first) => {
                    token = first;
                    continue;
                }
            };
            // The value is complete, and may complete those around it.
            token = loop {
                let Some(last) = open.last_mut() else { return Ok(value) };
                last.count += 1;
                match &last.key {
                    Some(key) => last.table.raw_set(self.given.lua.create_string(key)?, value)?,
                    None => last.table.raw_set(last.count, value)?,
                }
                match self.behind_element(&mut open)? {
                    Begun::Open(next) => break next,
                    Begun::Value(table) => value = table,
                }
            };
        }
    }

    /// A value that holds no others.
    fn scalar(&self, token: Token) -> Result<Value> {
        Ok(match token {
            Token::String(text) => Value::String(self.given.lua.create_string(text)?),
            Token::Number(n) => Value::Number(n),
            Token::Boolean(is_true) => Value::Boolean(is_true),
            Token::Null => Value::NULL,
            other => return Err(self.unexpected("value", &other)),
        })
    }

    fn descend(&self, open: &[Open]) -> Result<Table> {
        let depth = open.len() + 1;
        if depth > self.depth_max {
            let place = self.at;
            return Err(self
                .given
                .fail(format!("Found too many nested data structures ({depth}) at character {place}")));
        }
        self.given.lua.create_table()
    }

    fn object(&mut self, open: &mut Vec<Open>) -> Result<Begun> {
        let table = self.descend(open)?;
        let token = self.token();
        if let Token::ObjectEnd = token {
            return Ok(Begun::Value(Value::Table(table)));
        }
        let key = self.member(token)?;
        open.push(Open { table, key: Some(key), count: 0 });
        Ok(Begun::Open(self.token()))
    }

    /// The name of a member and the colon behind it.
    fn member(&mut self, token: Token) -> Result<Vec<u8>> {
        let Token::String(key) = token else { return Err(self.unexpected("object key string", &token)) };
        match self.token() {
            Token::Colon => Ok(key),
            other => Err(self.unexpected("colon", &other)),
        }
    }

    fn array(&mut self, open: &mut Vec<Open>) -> Result<Begun> {
        let table = self.descend(open)?;
        let token = self.token();
        if let Token::ArrayEnd = token {
            return Ok(Begun::Value(Value::Table(table)));
        }
        open.push(Open { table, key: None, count: 0 });
        Ok(Begun::Open(token))
    }

    /// What follows an element of the innermost array or object: the token that begins the next one, or the
    /// whole of it.
    fn behind_element(&mut self, open: &mut Vec<Open>) -> Result<Begun> {
        let is_object = open.last().is_some_and(|last| last.key.is_some());
        match (self.token(), is_object) {
            (Token::ObjectEnd, true) | (Token::ArrayEnd, false) => {
                let last = open.pop().expect("an element lies in something");
                Ok(Begun::Value(Value::Table(last.table)))
            }
            (Token::Comma, true) => {
                let token = self.token();
                let key = self.member(token)?;
                if let Some(last) = open.last_mut() {
                    last.key = Some(key);
                }
                Ok(Begun::Open(self.token()))
            }
            (Token::Comma, false) => Ok(Begun::Open(self.token())),
            (other, true) => Err(self.unexpected("comma or object end", &other)),
            (other, false) => Err(self.unexpected("comma or array end", &other)),
        }
    }

    fn token(&mut self) -> Token {
        let rest = &self.text[self.at..];
        self.at += rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.index = self.at;
        let Some(&first) = self.text.get(self.at) else { return Token::End };
        let single = match first {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            0 => return Token::End,
            b'"' => return self.string(),
            b'-' | b'0'..=b'9' => return self.number(),
            b'+' | b'f' | b'i' | b'I' | b'n' | b'N' | b't' => return self.word(),
            _ => return Token::Fault("invalid token"),
        };
        self.at += 1;
        single
    }

    fn word(&mut self) -> Token {
        let rest = &self.text[self.at..];
        for (word, token) in
            [("true", Token::Boolean(true)), ("false", Token::Boolean(false)), ("null", Token::Null)]
        {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len();
                return token;
            }
        }
        match self.keeps_invalid && is_invalid_number(rest) {
            true => self.number(),
            false => Token::Fault("invalid token"),
        }
    }

    fn number(&mut self) -> Token {
        let rest = &self.text[self.at..];
        if !self.keeps_invalid && is_invalid_number(rest) {
            return Token::Fault("invalid number");
        }
        let Some((n, len)) = parse_front(rest) else { return Token::Fault("invalid number") };
        self.at += len;
        Token::Number(n)
    }

    fn fault(&mut self, why: &'static str) -> Token {
        self.index = self.at;
        Token::Fault(why)
    }

    /// A string, without its quotes and with its escapes undone.
    fn string(&mut self) -> Token {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.iter().take_while(|b| !matches!(b, b'"' | b'\\' | 0)).count();
            out.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match rest.get(plain) {
                Some(b'"') => {
                    self.at += 1;
                    return Token::String(out);
                }
                Some(b'\\') => {}
                _ => return self.fault("unexpected end of string"),
            }
            let escaped = match rest.get(plain + 1) {
                Some(b'b') => 0x08,
                Some(b't') => b'\t',
                Some(b'n') => b'\n',
                Some(b'f') => 0x0C,
                Some(b'r') => b'\r',
                Some(b @ (b'"' | b'\\' | b'/')) => *b,
                Some(b'u') => match unicode(&rest[plain..]) {
                    Some((letter, len)) => {
                        out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                        self.at += len;
                        continue;
                    }
                    None => return self.fault("invalid unicode escape code"),
                },
                _ => return self.fault("invalid escape code"),
            };
            out.push(escaped);
            self.at += 2;
        }
    }
}

/// What a token begins: a value that is complete, or a table whose first element begins with this token.
enum Begun {
    Value(Value),
    Open(Token),
}

/// What C's `strtod` reads and JSON does not have: hexadecimal digits, zeros in front, infinity, NaN.
fn is_invalid_number(text: &[u8]) -> bool {
    let text = match text.first() {
        Some(b'+') => return true,
        Some(b'-') => &text[1..],
        _ => text,
    };
    match text.first() {
        Some(b'0') => matches!(text.get(1), Some(b'x' | b'X' | b'0'..=b'9')),
        Some(b) if *b <= b'9' => false,
        None => false,
        _ => {
            let starts = |name: &[u8]| text.get(..3).is_some_and(|front| front.eq_ignore_ascii_case(name));
            starts(b"inf") || starts(b"nan")
        }
    }
}

/// The letter of `\uXXXX`, or of two such escapes that are a surrogate pair, and the length of both.
fn unicode(text: &[u8]) -> Option<(char, usize)> {
    let high = hex4(text.get(2..6)?)?;
    if high & 0xF800 != 0xD800 {
        return Some((char::from_u32(high)?, 6));
    }
    if text.get(6..8)? != b"\\u" {
        return None;
    }
    let low = hex4(text.get(8..12)?)?;
    if high & 0x400 != 0 || low & 0xFC00 != 0xDC00 {
        return None;
    }
    Some((char::from_u32(0x1_0000 + ((high & 0x3FF) << 10) + (low & 0x3FF))?, 12))
}

fn hex4(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |n, digit| Some(n << 4 | char::from(*digit).to_digit(16)?))
}
