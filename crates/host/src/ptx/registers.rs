//! Registers by how far they are from another, for texts that compress better. Also compiled into the build script.
//!
//! A compiler gives each value a register of its own, so that of two rows of multiply-adds that do the same no line has the words of
//! the other. Their distances are the same: a number becomes the distance, with its sign, from that of the first register of
//! its kind with which a line began before, of whichever line was the last.
//!
//! | PTX | relative |
//! |---|---|
//! | `fma.rn.f32 %f17, %f3, %f5, %f9;` | `fma.rn.f32 %f+17, %f-14, %f-12, %f-8;` |
//! | `fma.rn.f32 %f18, %f4, %f6, %f10;` | `fma.rn.f32 %f+1, %f-14, %f-12, %f-8;` |

/// Digits that a number may have: any register's, and no sum of two of them overflows.
const MOST_DIGITS: usize = 9;
/// Stands before what is no distance but looks as one, which no compiler writes.
const ESCAPE: char = '~';

/// The text with distances in place of registers' numbers.
#[cfg_attr(not(test), allow(dead_code, reason = "the library reads alone"))]
pub(crate) fn relative(text: &str) -> String {
    rewritten(text, |rest, from| {
        if rest.starts_with(['+', '-', ESCAPE]) {
            return Some((0, None, ESCAPE.to_string()));
        }
        let digits = digits(rest)?;
        let number: i64 = digits.parse().ok()?;
        // What would be read as it is not written is left alone.
        (digits.len() == number.to_string().len()).then(|| (digits.len(), Some(number), format!("{:+}", number - from)))
    })
}

/// The text that [`relative`] was given.
#[cfg_attr(not(test), allow(dead_code, reason = "the build script writes alone"))]
pub(crate) fn absolute(text: &str) -> String {
    rewritten(text, |rest, from| {
        if rest.starts_with(ESCAPE) {
            return Some((1, None, String::new()));
        }
        let distance = digits(rest.strip_prefix(['+', '-'])?)?;
        let number = from + rest[..=distance.len()].parse::<i64>().ok()?;
        Some((1 + distance.len(), Some(number), number.to_string()))
    })
}

/// The digits that a text begins with, if they may be a register's.
fn digits(text: &str) -> Option<&str> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    (1..=MOST_DIGITS).contains(&length).then(|| &text[..length])
}

/// Rewrites what stands behind the kinds of registers, `%f` or `%rd`: `number` gets it and the number to count from, and gives how many
/// bytes it takes of it, the register's number if it is one, and what stands there instead.
fn rewritten(text: &str, number: impl Fn(&str, i64) -> Option<(usize, Option<i64>, String)>) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut first: Vec<(&str, i64)> = Vec::new();
    for line in text.split_inclusive('\n') {
        let (mut rest, mut is_first) = (line, true);
        while let Some(at) = rest.find('%') {
            let kind_len = rest[at + 1..].bytes().take_while(u8::is_ascii_lowercase).count();
            let (kind, after) = rest.split_at(at + 1 + kind_len);
            out.push_str(kind);
            let kind = &kind[at..];
            let known = first.iter().position(|(other, _)| *other == kind);
            let from = known.map_or(0, |known| first[known].1);
            rest = after;
            if let Some((length, number, instead)) = number(after, from) {
                out.push_str(&instead);
                rest = &after[length..];
                match (number.filter(|_| is_first), known) {
                    (Some(number), Some(known)) => first[known].1 = number,
                    (Some(number), None) => first.push((kind, number)),
                    (None, _) => {}
                }
                is_first &= number.is_none();
            }
        }
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_do_the_same_have_the_same_words() {
        let text =
            "\tfma.rn.f32 %f17, %f3, %rd5, %f9;\n\tfma.rn.f32 %f18, %f4, %rd5, %f10;\n\tst [%rd6+4], {%f18, %f7};\n";
        let said = "\tfma.rn.f32 %f+17, %f-14, %rd+5, %f-8;\n\tfma.rn.f32 %f+1, %f-14, %rd+5, %f-8;\n\tst [%rd+6+4], {%f+0, %f-11};\n";
        assert_eq!(relative(text), said);
        assert_eq!(absolute(said), text);
    }

    #[test]
    fn what_is_no_register_stays() {
        for text in [
            "",
            "%",
            "%%",
            "%tid.x",
            "100 %\n",
            "%é7",
            "%r007, %r7",
            "%r1234567890",
            "%r\n1",
            "mov %r1, %r999999999;%r0",
            "%r+5 %r~5 %r~ %r-7 %r~+5 %r1",
        ] {
            assert_eq!(absolute(&relative(text)), text);
        }
        assert_eq!(relative("%ntid.x %r007"), "%ntid.x %r007");
    }

    /// Damage gives other words, and nothing worse.
    #[test]
    fn any_text_is_read() {
        for text in ["%r+999999999, %r+999999999\n%r+999999999", "%r-5", "%r+", "%r-\n", "%r+1234567890", "%+3\n%-4é"]
        {
            assert!(absolute(text).len() < 64, "{text}");
        }
    }
}
