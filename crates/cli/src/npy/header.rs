//! The text of a .npy header: `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`.

use model::Dtype;

/// The order in which a file holds its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The last index runs fastest: rows lie one after the other.
    C,
    /// The first index runs fastest: columns lie one after the other.
    Fortran,
}

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub dtype: Dtype,
    pub order: Order,
    /// At most three lengths, in elements.
    pub shape: Vec<u64>,
}

impl Header {
    /// Reads the dict; the error says what is wrong with the file, in words that follow its name.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let mut scan = Scanner { text, at: 0 };
        let (mut dtype, mut order, mut shape) = (None, None, None);
        scan.expect(b'{')?;
        while !scan.take(b'}') {
            let key = scan.string()?;
            scan.expect(b':')?;
            let twice = match key {
                b"descr" => dtype.replace(scan.descr()?).is_some(),
                b"fortran_order" => order.replace(scan.order()?).is_some(),
                b"shape" => shape.replace(scan.shape()?).is_some(),
                other => return Err(format!("its .npy header has an unknown key '{}'", shown(other))),
            };
            if twice {
                return Err(format!("its .npy header has '{}' twice", shown(key)));
            }
            if !scan.take(b',') {
                scan.expect(b'}')?;
                break;
            }
        }
        scan.end()?;
        let missing = |key| format!("its .npy header has no '{key}'");
        Ok(Self {
            dtype: dtype.ok_or_else(|| missing("descr"))?,
            order: order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    /// Elements that the shape holds, if their bytes can be counted in 63 bits.
    pub fn elements(&self) -> Option<u64> {
        // A zero length must not hide an overflow of the others: NumPy's own product wraps there.
        let mut spans = self.shape.iter().filter(|&&length| length != 0);
        let product = spans.try_fold(1_u64, |product, &length| product.checked_mul(length))?;
        product.checked_mul(self.dtype.bytes()).filter(|&bytes| i64::try_from(bytes).is_ok())?;
        Some(if self.shape.contains(&0) { 0 } else { product })
    }
}

/// A position in the header's text.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.take(byte) { Ok(()) } else { Err(self.unexpected(&format!("'{}'", char::from(byte)))) }
    }

    fn end(&mut self) -> Result<(), String> {
        if self.peek().is_none() { Ok(()) } else { Err(self.unexpected("its end")) }
    }

    fn unexpected(&self, wanted: &str) -> String {
        format!("its .npy header is malformed: {wanted} expected at byte {}", self.at)
    }

    /// A quoted string without escapes: none of the three keys and none of the accepted types needs one.
    fn string(&mut self) -> Result<&'a [u8], String> {
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.unexpected("a quoted string")),
        };
        let rest = &self.text[self.at + 1..];
        let length = rest.iter().position(|&byte| byte == quote).ok_or_else(|| self.unexpected("a closed string"))?;
        self.at += length + 2;
        Ok(&rest[..length])
    }

    /// Letters and digits in a row.
    fn word(&mut self) -> &'a [u8] {
        self.peek();
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn order(&mut self) -> Result<Order, String> {
        match self.word() {
            b"False" => Ok(Order::C),
            b"True" => Ok(Order::Fortran),
            _ => Err(self.unexpected("True or False")),
        }
    }

    fn descr(&mut self) -> Result<Dtype, String> {
        if self.peek() == Some(b'[') {
            return Err("it holds records, not numbers".into());
        }
        dtype(self.string()?)
    }

    fn shape(&mut self) -> Result<Vec<u64>, String> {
        let mut shape = Vec::new();
        self.expect(b'(')?;
        while !self.take(b')') {
            shape.push(self.length()?);
            if !self.take(b',') {
                // `(5)` is a number in Python, no shape.
                if shape.len() == 1 {
                    return Err(self.unexpected("','"));
                }
                self.expect(b')')?;
                break;
            }
        }
        match shape.len() {
            0..=3 => Ok(shape),
            axes => Err(format!("it has {axes} axes, but a batch of matrices has three")),
        }
    }

    fn length(&mut self) -> Result<u64, String> {
        if self.peek() == Some(b'-') {
            return Err("its .npy header claims a negative size".into());
        }
        let word = self.word();
        // Python 2 wrote its long integers as 3L.
        let digits = word.strip_suffix(b"L").unwrap_or(word);
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(self.unexpected("a length"));
        }
        let digits = digits.iter().map(|&digit| u64::from(digit - b'0'));
        let mut value = Some(0_u64);
        for digit in digits {
            value = value.and_then(|value| value.checked_mul(10)?.checked_add(digit));
        }
        value.ok_or_else(|| "its .npy header claims a size beyond 64 bits".into())
    }
}

/// What the others are not.
const WANTED: &str = "not f32, f64 or complex numbers of them";

/// The element type that a NumPy type string names.
fn dtype(descr: &[u8]) -> Result<Dtype, String> {
    let native = if cfg!(target_endian = "little") { b'<' } else { b'>' };
    let (endian, kind) = match descr {
        [endian @ (b'<' | b'>' | b'=' | b'|'), kind @ ..] => (*endian, kind),
        kind => (b'=', kind),
    };
    let endian = if endian == b'=' { native } else { endian };
    let name = shown(descr);
    match (endian, kind) {
        (b'<', b"f4") => Ok(Dtype::F32),
        (b'<', b"f8") => Ok(Dtype::F64),
        (b'<', b"c8") => Ok(Dtype::C64),
        (b'<', b"c16") => Ok(Dtype::C128),
        (b'>', [b'f' | b'c', ..]) => Err(format!(
            "it is big-endian ('{name}'), but only little-endian is read (in NumPy: a.astype('<{}'))",
            shown(kind)
        )),
        (_, [b'O', ..]) => Err(format!("it holds Python objects ('{name}'), {WANTED}")),
        (_, [b'i' | b'u' | b'b', ..]) => {
            Err(format!("it holds integers ('{name}'), {WANTED} (in NumPy: a.astype('<f8'))"))
        }
        _ => Err(format!("it holds '{name}', {WANTED}")),
    }
}

/// Bytes of a file in a message: printable, and not at length.
fn shown(bytes: &[u8]) -> String {
    let text: String = bytes.iter().take(24).flat_map(|&byte| byte.escape_ascii()).map(char::from).collect();
    if bytes.len() > 24 { text + ".." } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(text: &str) -> Result<Header, String> {
        Header::parse(text.as_bytes())
    }

    #[test]
    fn reads_what_numpy_writes() {
        let read = header("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }          \n").unwrap();
        assert_eq!(read, Header { dtype: Dtype::F64, order: Order::C, shape: vec![3, 4] });
        let read = header("{\"shape\":(5L,),\"fortran_order\":True,\"descr\":\"=f4\"}").unwrap();
        assert_eq!(read, Header { dtype: Dtype::F32, order: Order::Fortran, shape: vec![5] });
        for (descr, dtype) in [("<c8", Dtype::C64), ("=c16", Dtype::C128)] {
            let read = header(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2, 3), }}")).unwrap();
            assert_eq!((read.dtype, read.elements()), (dtype, Some(6)));
        }
        assert!(header("{'descr': 'f8', 'fortran_order': False, 'shape': ()}").unwrap().shape.is_empty());
    }

    #[test]
    fn counts_elements_without_wrapping() {
        let with = |shape: &[u64]| Header { dtype: Dtype::F64, order: Order::C, shape: shape.to_vec() }.elements();
        assert_eq!(with(&[]), Some(1));
        assert_eq!(with(&[3, 4]), Some(12));
        assert_eq!(with(&[0, 5]), Some(0));
        assert_eq!(with(&[1 << 32, 1 << 32]), None);
        assert_eq!(with(&[1 << 60]), None);
        assert_eq!(with(&[u64::MAX, 0]), None);
    }

    #[test]
    fn a_deep_nest_ends_in_an_error() {
        for open in ["(", "[", "{"] {
            let deep = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {}", open.repeat(60_000));
            assert!(header(&deep).is_err());
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Header::parse(&bytes);
        }

        #[test]
        fn never_panics_near_a_real_one(at in 0_usize..60, byte in any::<u8>(), cut in 0_usize..64) {
            let mut text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }".to_vec();
            if let Some(place) = text.get_mut(at) {
                *place = byte;
            }
            text.truncate(cut);
            if let Ok(header) = Header::parse(&text) {
                let _ = header.elements();
            }
        }
    }
}
