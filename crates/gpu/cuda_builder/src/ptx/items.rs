//! The structure of a PTX text: a header, then functions and variables.

use super::PtxError;

/// What an item is, as far as splitting goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A function that can be launched.
    Entry,
    /// A function with a body, or a variable.
    Definition,
    /// A function without a body.
    Declaration,
}

/// A function or a variable.
#[derive(Debug)]
pub(super) struct Item<'a> {
    pub(super) kind: Kind,
    pub(super) name: &'a str,
    /// From its first directive to its `;` or `}`.
    pub(super) text: &'a str,
}

/// A piece of PTX that matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    /// A name, a directive with its dot, a number, a register.
    Word(&'a str),
    Sign(u8),
    /// A string that does not end.
    Broken,
}

/// Words and signs with the places where they start; comments and strings are passed over.
struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, Token<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%');
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let start = self.at;
            let end_of = |mark: &str| self.text[start..].find(mark).map(|found| start + found + mark.len());
            match rest {
                [] => return None,
                [b'/', b'/', ..] => self.at = end_of("\n").unwrap_or(self.text.len()),
                [b'/', b'*', ..] => self.at = end_of("*/").unwrap_or(self.text.len()),
                [b'"', tail @ ..] => match tail.iter().position(|&byte| byte == b'"') {
                    Some(end) => self.at += end + 2,
                    None => {
                        self.at = self.text.len();
                        return Some((start, Token::Broken));
                    }
                },
                [first, tail @ ..] if word(first) || *first == b'.' => {
                    self.at += 1 + tail.iter().take_while(|&byte| word(byte)).count();
                    return Some((start, Token::Word(&self.text[start..self.at])));
                }
                [first, ..] => {
                    self.at += 1;
                    // The pieces of a character outside ASCII are no sign that counts, and no place to cut the text at.
                    if first.is_ascii() && !first.is_ascii_whitespace() {
                        return Some((start, Token::Sign(*first)));
                    }
                    while !self.text.is_char_boundary(self.at) {
                        self.at += 1;
                    }
                }
            }
        }
    }
}

fn tokens(text: &str) -> Tokens<'_> {
    Tokens { text, at: 0 }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '$'))
}

/// All names in a text: of functions, variables, instructions and labels alike.
pub(super) fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    tokens(text).filter_map(|(_, token)| match token {
        Token::Word(word) if is_name(word) => Some(word),
        _ => None,
    })
}

/// Where the body of a function begins.
pub(super) fn body_at(text: &str) -> Option<usize> {
    tokens(text).find(|(_, token)| *token == Token::Sign(b'{')).map(|(at, _)| at)
}

/// The header (all up to the line of the last of `.version`, `.target`, `.address_size`) and the items after it.
pub(super) fn parse(text: &str) -> Result<(&str, Vec<Item<'_>>), PtxError> {
    let mut tokens = tokens(text);
    let (mut header_end, mut items) = (0, Vec::new());
    while let Some((start, token)) = tokens.next() {
        match token {
            Token::Word(".version" | ".target" | ".address_size") if items.is_empty() => {
                header_end = text[start..].find('\n').map_or(text.len(), |length| start + length + 1);
                tokens.at = header_end;
            }
            Token::Word(word) if word.starts_with('.') => items.push(item(text, start, word, &mut tokens)?),
            _ => return Err(malformed(text, start, "a directive was expected")),
        }
    }
    Ok((&text[..header_end], items))
}

fn malformed(text: &str, at: usize, reason: &'static str) -> PtxError {
    PtxError::Malformed { line: text[..at].matches('\n').count() + 1, reason }
}

/// The item whose first directive has just been read.
fn item<'a>(text: &'a str, start: usize, first: &'a str, tokens: &mut Tokens<'a>) -> Result<Item<'a>, PtxError> {
    let (mut name, mut depth) = (None, 0_u32);
    let (mut is_entry, mut is_function) = (first == ".entry", matches!(first, ".entry" | ".func"));
    let mut has_body = false;
    while let Some((at, token)) = tokens.next() {
        match token {
            Token::Word(".entry") => (is_entry, is_function) = (true, true),
            Token::Word(".func") => is_function = true,
            Token::Word(word) if depth == 0 && name.is_none() && is_name(word) => name = Some(word),
            Token::Word(_) => continue,
            Token::Broken => return Err(malformed(text, at, "a string does not end")),
            Token::Sign(b'(' | b'[' | b'{') => {
                has_body |= token == Token::Sign(b'{');
                depth += 1;
            }
            Token::Sign(b')' | b']' | b'}') => {
                depth = depth.checked_sub(1).ok_or_else(|| malformed(text, at, "closes what is not open"))?;
            }
            Token::Sign(_) => {}
        }
        let ends = match token {
            Token::Sign(b'}') => is_function,
            Token::Sign(b';') => true,
            _ => false,
        };
        if ends && depth == 0 {
            let kind = match (is_entry, is_function, has_body) {
                (true, _, true) => Kind::Entry,
                (_, true, false) => Kind::Declaration,
                _ => Kind::Definition,
            };
            let name = name.ok_or_else(|| malformed(text, start, "something without a name"))?;
            return Ok(Item { kind, name, text: &text[start..tokens.at] });
        }
    }
    Err(malformed(text, start, "it does not end"))
}
