//! Headers by the hundred thousand, the same ones every time: such as others write, which must be read for what they say,
//! and damaged ones, which must be refused or be read for what can be. Of the damaged ones half were one of corpus.txt before.

use std::time::{Duration, Instant};

use model::Dtype;

use super::read::read_header;
use super::{Header, Order};

const CASES: usize = 50_000;

/// A generator of numbers (xorshift64): the cases depend on nothing but its start.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a length")
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// White space, mostly none.
    fn space(&mut self) -> &'static str {
        self.pick(&["", "", "", " ", "  ", "\t", "\n", " \r\n "])
    }

    fn header(&mut self) -> Header {
        let dtype = self.pick(&[Dtype::F32, Dtype::F64, Dtype::C64, Dtype::C128]);
        let order = self.pick(&[Order::C, Order::Fortran]);
        let axes = self.below(4);
        let shape = (0..axes).map(|_| self.pick(&[0, 1, 2, 10, 4095, 1 << 20, (1 << 31) - 1])).collect();
        Header { dtype, order, shape }
    }

    /// One of the many ways to write a header.
    fn written(&mut self, header: &Header) -> String {
        let name = match header.dtype {
            Dtype::F32 => "f4",
            Dtype::F64 => "f8",
            Dtype::C64 => "c8",
            Dtype::C128 => "c16",
        };
        let order = if header.order == Order::Fortran { "True" } else { "False" };
        let (quote, prefix) = (self.pick(&['\'', '"']), self.pick(&["<", "=", ""]));
        let suffix = self.pick(&["", "", "L"]);
        let lengths = header.shape.iter().map(|length| format!("{}{length}{suffix}{}", self.space(), self.space()));
        let mut shape = lengths.collect::<Vec<_>>().join(",");
        if header.shape.len() == 1 || !header.shape.is_empty() && self.below(2) == 0 {
            shape.push(',');
        }
        let mut pairs = [
            ("descr", format!("{quote}{prefix}{name}{quote}")),
            ("fortran_order", order.to_owned()),
            ("shape", format!("({shape}{})", self.space())),
        ];
        pairs.swap(0, self.below(3));
        pairs.swap(1, 1 + self.below(2));
        let pairs = pairs.map(|(key, value)| {
            format!("{}{quote}{key}{quote}{}:{}{value}{}", self.space(), self.space(), self.space(), self.space())
        });
        let end = self.pick(&["", ","]);
        format!("{}{{{}{end}{}}}{}", self.space(), pairs.join(","), self.space(), self.pick(&["", "\n", "     \n"]))
    }

    /// A whole file up to its body, in a version of the format that holds the text.
    fn file(&mut self, text: &[u8]) -> Vec<u8> {
        let version = self.pick(&[1, 2, 3]);
        let mut file = [b"\x93NUMPY", &[version, 0][..]].concat();
        match version {
            1 => file.extend(u16::try_from(text.len()).expect("a short header").to_le_bytes()),
            _ => file.extend(u32::try_from(text.len()).expect("a short header").to_le_bytes()),
        }
        file.extend(text);
        file
    }

    /// One that was known, or such as anybody may write, damaged.
    fn damaged(&mut self, known: &[Known]) -> Vec<u8> {
        let mut file = if self.below(2) == 0 {
            known[self.below(known.len())].file.clone()
        } else {
            let header = self.header();
            let text = self.written(&header);
            self.file(text.as_bytes())
        };
        for _ in 0..=self.below(3) {
            if !file.is_empty() {
                self.damage(&mut file);
            }
        }
        file
    }

    /// Damages a file somewhere.
    fn damage(&mut self, file: &mut Vec<u8>) {
        let at = self.below(file.len());
        match self.below(7) {
            0 => file[at] = self.pick(b"\0\xff(){}[],:'\"-0129LTF<>=|.eE \n\\"),
            1 => file[at] ^= 1 << self.below(8),
            2 => file.truncate(at),
            3 => drop(file.remove(at)),
            4 => file.insert(at, self.pick(b"\0(){}[],:'\"-09L ")),
            5 => {
                let piece = file[at..(at + 1 + self.below(12)).min(file.len())].to_vec();
                let to = self.below(file.len());
                file.splice(to..to, piece);
            }
            _ => {
                let digits =
                    self.pick(&["18446744073709551615", "18446744073709551616", "4294967296", "-1", "1e3", "()"]);
                file.splice(at..at, digits.bytes());
            }
        }
    }
}

/// A file that once mattered, and what it is read as or why it is refused.
struct Known {
    why: &'static str,
    file: Vec<u8>,
    outcome: &'static str,
}

/// Those of corpus.txt, whose first page says how they are written.
fn corpus() -> Vec<Known> {
    let (mut known, mut why, mut file) = (Vec::new(), "", None);
    for (number, line) in include_str!("corpus.txt").lines().enumerate() {
        match (line.split_once(' ').unwrap_or((line, "")), &file) {
            (("#" | "##", words), None) => why = words,
            (("", ""), None) => {}
            (("<", text), None) => file = Some(unescaped(text)),
            (("=", outcome), Some(bytes)) => {
                known.push(Known { why, file: bytes.clone(), outcome });
                file = None;
            }
            _ => panic!("line {} of corpus.txt: {line}", number + 1),
        }
    }
    known
}

/// The bytes of a line.
fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        let (byte, used) = match (letter, rest.chars().next()) {
            ('\\', Some('x')) => (u8::from_str_radix(&rest[1..3], 16).expect("two digits"), 3),
            ('\\', Some(of)) => (b"\n\r\t\\"["nrt\\".find(of).expect("a known letter")], 1),
            ('~', _) => {
                let (count, _) = rest.split_once('~').expect("a number between two");
                let last = bytes.pop().expect("a byte to repeat");
                bytes.extend(std::iter::repeat_n(last, count.parse().expect("a number")));
                rest = &rest[count.len() + 1..];
                continue;
            }
            _ => (u8::try_from(letter).expect("a byte"), 0),
        };
        bytes.push(byte);
        rest = &rest[used..];
    }
    bytes
}

/// What a file is read as, or why it is refused.
fn outcome(file: &[u8]) -> String {
    let (header, offset) = match read(file) {
        Ok(found) => found,
        Err(reason) => return reason,
    };
    let lengths: Vec<String> = header.shape.iter().map(u64::to_string).collect();
    let elements = header.elements().map_or("more than can be counted".to_owned(), |count| count.to_string());
    format!("{} {:?} ({}), elements: {elements}, from byte {offset}", header.dtype, header.order, lengths.join(", "))
}

fn read(file: &[u8]) -> Result<(Header, u64), String> {
    read_header(file, file.len() as u64)
}

#[test]
fn headers_as_anybody_may_write_them_are_read_for_what_they_say() {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    for case in 0..CASES {
        let header = numbers.header();
        let text = numbers.written(&header);
        let mut file = numbers.file(text.as_bytes());
        let offset = file.len() as u64;
        file.extend([0; 3]);
        assert_eq!(read(&file), Ok((header, offset)), "case {case}: {text:?}");
    }
}

#[test]
fn what_once_mattered_is_read_or_refused_as_it_was() {
    let known = corpus();
    let others: Vec<String> = known
        .iter()
        .map(|known| (known, outcome(&known.file)))
        .filter(|(known, found)| found != known.outcome)
        .map(|(known, found)| format!("{}: {found}, not {}", known.why, known.outcome))
        .collect();
    assert!(others.is_empty(), "{}", others.join("\n"));
    let refused = known.iter().filter(|known| known.outcome.starts_with("it")).count();
    assert!(refused > 50 && known.len() - refused > 15, "{refused} of {} are refused", known.len());
    // Each is there once, and says why.
    let mut files: Vec<&[u8]> = known.iter().map(|known| &known.file[..]).collect();
    files.sort_unstable();
    assert!(files.windows(2).all(|pair| pair[0] != pair[1]));
    assert!(known.iter().all(|known| !known.why.is_empty()));
    assert_eq!(unescaped("a\\x00\\\\~3~ \\n\\xff"), b"a\0\\\\\\ \n\xff");
}

#[test]
fn damaged_headers_are_refused_in_one_line_or_read_for_what_can_be() {
    let mut numbers = Numbers(0xD1B5_4A32_D192_ED03);
    let (mut refused, mut longest, known) = (0, Duration::ZERO, corpus());
    for case in 0..CASES {
        // First as they are.
        let file = known.get(case).map_or_else(|| numbers.damaged(&known), |known| known.file.clone());
        let began = Instant::now();
        let found = read(&file);
        longest = longest.max(began.elapsed());
        let shown = String::from_utf8_lossy(&file);
        match found {
            Ok((found, offset)) => {
                assert!(offset <= file.len() as u64 && found.shape.len() <= 3, "case {case}: {shown:?}");
                // Whatever it says, it says it: the same text written anew means the same.
                let again = numbers.written(&found);
                assert_eq!(Header::parse(again.as_bytes()), Ok(found.clone()), "case {case}: {shown:?}");
                let lengths = || found.shape.iter().map(|length| u128::from(*length));
                // None: more than 2^128.
                let times = |product: u128, length| product.checked_mul(length);
                let size = u128::from(found.dtype.bytes());
                if let Some(elements) = found.elements() {
                    let bytes = u128::from(elements) * size;
                    let right = lengths().try_fold(size, times) == Some(bytes) && bytes < 1 << 63;
                    assert!(right, "case {case}: {shown:?}");
                } else {
                    let least = lengths().filter(|length| *length != 0).try_fold(size, times);
                    assert!(least.is_none_or(|bytes| bytes >= 1 << 63), "case {case}: {shown:?}");
                }
            }
            Err(reason) => {
                let is_a_line =
                    !reason.is_empty() && reason.len() < 200 && reason.chars().all(|letter| !letter.is_control());
                assert!(is_a_line, "case {case}: {reason:?} of {shown:?}");
                refused += 1;
            }
        }
    }
    assert!((CASES / 2..CASES).contains(&refused), "{refused} of {CASES} are refused: the damage is none, or total");
    assert!(longest < Duration::from_millis(500), "one took {longest:?}");
}
