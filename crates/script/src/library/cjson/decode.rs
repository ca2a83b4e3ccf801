//! JSON as MessagePack, of which the crate `lua` makes values. Arrays and objects wait on a list while what
//! is in them is read, so that how deep they nest is no matter of the thread's stack.
use super::failure::{Done, Failure, written};
use super::number::{append_general, parse_front};
use super::{DEPTH_MAX, Invalid, Settings};
use crate::state::State;
use lua::{NULL, Seen, Stack, Written};

/// A word of JSON.
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// It is written already.
    String,
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
            Token::String => "T_STRING",
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
    state: &'a State,
    out: &'a mut Vec<u8>,
    room: usize,
    text: &'a [u8],
    at: usize,
    /// Where the last token began, or where its fault was found.
    index: usize,
    keeps_invalid: bool,
    depth_max: usize,
}

/// An array or object whose elements are being read.
struct Open {
    is_object: bool,
    /// Where its length is written, when it is known.
    len_at: usize,
    count: u32,
}

/// Writes the value in MessagePack.
pub(super) fn decode(
    stack: &mut Stack<'_>,
    settings: Settings,
    state: &State,
    (room, out): (usize, &mut Vec<u8>),
) -> Written {
    let number;
    let text = match stack.argument(1) {
        Seen::String(text) => text,
        Seen::Number(n) => {
            number = shown(n);
            &number
        }
        _ => return Written::NotAString(1),
    };
    written(read(text, settings, state, (room, out)), out)
}

fn read(text: &[u8], settings: Settings, state: &State, (room, out): (usize, &mut Vec<u8>)) -> Done {
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err(Failure::Says("JSON parser does not support UTF-16 or UTF-32".into()));
    }
    if u32::try_from(text.len()).is_err() {
        // Lengths are written in 32 bits.
        return Err(Failure::Says("JSON text is too long".into()));
    }
    let mut decoder = Decoder {
        state,
        out,
        room,
        text,
        at: 0,
        index: 0,
        keeps_invalid: settings.decode_invalid != Invalid::Refused,
        depth_max: settings.decode_depth_max.min(DEPTH_MAX) as usize,
    };
    decoder.document()?;
    match decoder.token() {
        Token::End => Ok(()),
        other => Err(decoder.unexpected("the end", &other)),
    }
}

impl Decoder<'_> {
    fn unexpected(&self, expected: &str, found: &Token) -> Failure {
        let (found, place) = (found.name(), self.index + 1);
        Failure::Says(format!("Expected {expected} but found {found} at character {place}"))
    }

    fn document(&mut self) -> Done {
        let mut open: Vec<Open> = Vec::new();
        let mut token = self.token();
        loop {
            self.state.steps(1).map_err(|_| Failure::Stopped)?;
            if self.out.len() > self.room {
                let _ = self.state.stop_out_of_memory();
                return Err(Failure::Stopped);
            }
            let first = match token {
                Token::ObjectBegin => self.begin(&mut open, true)?,
                Token::ArrayBegin => self.begin(&mut open, false)?,
                other => {
                    self.scalar(other)?;
                    None
                }
            };
            if let Some(first) = first {
                token = first;
                continue;
            }
            // The value is complete, and may complete those around it.
            token = loop {
                let Some(last) = open.last_mut() else { return Ok(()) };
                last.count += 1;
                if let Some(next) = self.behind_element(&mut open)? {
                    break next;
                }
            };
        }
    }

    /// Writes a value that holds no others.
    fn scalar(&mut self, token: Token) -> Done {
        match token {
            Token::String => {}
            Token::Number(n) if (0.0..128.0).contains(&n) && n.trunc() == n && n.is_sign_positive() => {
                self.out.push(n as u8);
            }
            Token::Number(n) => {
                self.out.push(0xCB);
                self.out.extend_from_slice(&n.to_bits().to_be_bytes());
            }
            Token::Boolean(is_true) => self.out.push(0xC2 + u8::from(is_true)),
            Token::Null => self.out.push(NULL),
            other => return Err(self.unexpected("value", &other)),
        }
        Ok(())
    }

    /// Begins an object or array; the token that its first element begins with, None where it is empty.
    fn begin(&mut self, open: &mut Vec<Open>, is_object: bool) -> Done<Option<Token>> {
        let depth = open.len() + 1;
        if depth > self.depth_max {
            let place = self.at;
            let why = format!("Found too many nested data structures ({depth}) at character {place}");
            return Err(Failure::Says(why));
        }
        let len_at = self.out.len() + 1;
        self.out.extend_from_slice(&[if is_object { 0xDF } else { 0xDD }, 0, 0, 0, 0]);
        let first = match (self.token(), is_object) {
            (Token::ObjectEnd, true) | (Token::ArrayEnd, false) => return Ok(None),
            (token, true) => {
                self.member(token)?;
                self.token()
            }
            (token, false) => token,
        };
        open.push(Open { is_object, len_at, count: 0 });
        Ok(Some(first))
    }

    /// Takes the name of a member, and the colon behind it.
    fn member(&mut self, token: Token) -> Done {
        if !matches!(token, Token::String) {
            return Err(self.unexpected("object key string", &token));
        }
        match self.token() {
            Token::Colon => Ok(()),
            other => Err(self.unexpected("colon", &other)),
        }
    }

    /// What follows an element of the innermost array or object: the token that begins the next one; None at
    /// its end.
    fn behind_element(&mut self, open: &mut Vec<Open>) -> Done<Option<Token>> {
        let is_object = open.last().is_some_and(|last| last.is_object);
        match (self.token(), is_object) {
            (Token::ObjectEnd, true) | (Token::ArrayEnd, false) => {
                if let Some(Open { len_at, count, .. }) = open.pop() {
                    self.out[len_at..len_at + 4].copy_from_slice(&count.to_be_bytes());
                }
                Ok(None)
            }
            (Token::Comma, true) => {
                let token = self.token();
                self.member(token)?;
                Ok(Some(self.token()))
            }
            (Token::Comma, false) => Ok(Some(self.token())),
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

    /// Writes a string, without its quotes and with its escapes undone. Wherever one may stand it is what
    /// comes next.
    fn string(&mut self) -> Token {
        self.at += 1;
        self.out.extend_from_slice(&[0xDB, 0, 0, 0, 0]);
        let start = self.out.len();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.iter().take_while(|b| !matches!(b, b'"' | b'\\' | 0)).count();
            self.out.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match rest.get(plain) {
                Some(b'"') => {
                    self.at += 1;
                    let len = (self.out.len() - start) as u32;
                    self.out[start - 4..start].copy_from_slice(&len.to_be_bytes());
                    return Token::String;
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
                        self.out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                        self.at += len;
                        continue;
                    }
                    None => return self.fault("invalid unicode escape code"),
                },
                _ => return self.fault("invalid escape code"),
            };
            self.out.push(escaped);
            self.at += 2;
        }
    }
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

/// A number that is given for a string, as Lua shows it.
fn shown(n: f64) -> Vec<u8> {
    let mut text = Vec::new();
    match (n.is_nan(), n.is_finite()) {
        (_, true) => append_general(&mut text, n, 14),
        (true, _) => text.extend_from_slice(if n.is_sign_negative() { b"-nan" } else { b"nan" }),
        (false, _) => text.extend_from_slice(if n < 0.0 { b"-inf" } else { b"inf" }),
    }
    text
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
