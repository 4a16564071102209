//! Reads an archive of PTX modules. Also compiled into the build script.
//!
//! `LPX1`, the FNV-1a hash of the layout (8 bytes), the layout's length (4 bytes), the layout compressed. The layout:
//! the number of texts and each text, the number of modules and for each entry, architecture, head, the place of the head
//! in the text, the text's index. Numbers are 4 bytes, the lowest first; a text is its length and its bytes.
//! A head is the lines `.version` and `.target`, in which alone a kernel's modules often differ.

pub(crate) const MAGIC: &[u8; 4] = b"LPX1";
/// More than any archive needs; a damaged length asks for no more memory than this.
const MOST_BYTES: usize = 1 << 28;

/// One module; its text is kept without its head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) entry: String,
    /// `sm_90`
    pub(crate) arch: String,
    pub(crate) head: String,
    /// Where in `body` the head belongs, bytes.
    pub(crate) head_at: usize,
    pub(crate) body: String,
}

impl Module {
    /// A module from its text.
    #[cfg_attr(not(test), allow(dead_code, reason = "the build script makes modules, the library reads them"))]
    pub(crate) fn new(entry: &str, arch: &str, text: &str) -> Self {
        let head_at = text.find(".version").unwrap_or(0);
        let is_head = |line: &&str| line.starts_with(".version") || line.starts_with(".target");
        let head: String = text[head_at..].split_inclusive('\n').take_while(is_head).collect();
        let body = format!("{}{}", &text[..head_at], &text[head_at + head.len()..]);
        Self { entry: entry.to_string(), arch: arch.to_string(), head, head_at, body }
    }

    /// The whole text.
    #[cfg_attr(not(test), allow(dead_code, reason = "the library wants texts, the build script only checks"))]
    pub(crate) fn text(&self) -> String {
        let (before, after) = self.body.split_at(self.head_at);
        format!("{before}{}{after}", self.head)
    }
}

/// Why an archive cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damaged(&'static str);

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the archive of kernels is damaged: {}", self.0)
    }
}

/// All modules of an archive.
pub(crate) fn unpack(archive: &[u8]) -> Result<Vec<Module>, Damaged> {
    let mut outer = Reader(archive);
    if outer.take(MAGIC.len())? != MAGIC {
        return Err(Damaged("it does not begin as one"));
    }
    let (low, high) = (outer.number()?, outer.number()?);
    let length = outer.length()?;
    if length > MOST_BYTES {
        return Err(Damaged("it claims to be larger than any"));
    }
    let layout = miniz_oxide::inflate::decompress_to_vec_with_limit(outer.0, length)
        .map_err(|_| Damaged("it cannot be decompressed"))?;
    if layout.len() != length || hash(&layout) != u64::from(high) << 32 | u64::from(low) {
        return Err(Damaged("its contents are not what was written"));
    }
    let mut reader = Reader(&layout);
    let texts = (0..reader.number()?).map(|_| reader.text()).collect::<Result<Vec<_>, _>>()?;
    let modules = (0..reader.number()?).map(|_| module(&mut reader, &texts)).collect::<Result<Vec<_>, _>>()?;
    if reader.0.is_empty() { Ok(modules) } else { Err(Damaged("something follows the last module")) }
}

fn module(reader: &mut Reader, texts: &[&str]) -> Result<Module, Damaged> {
    let (entry, arch, head) = (reader.text()?, reader.text()?, reader.text()?);
    let head_at = reader.length()?;
    let body = *texts.get(reader.length()?).ok_or(Damaged("a module without a text"))?;
    if !body.is_char_boundary(head_at) {
        return Err(Damaged("a head outside of its text"));
    }
    let [entry, arch, head, body] = [entry, arch, head, body].map(str::to_string);
    Ok(Module { entry, arch, head, head_at, body })
}

/// FNV-1a: against damage, not against intent.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Damaged("it ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, Damaged> {
        let bytes = self.take(4)?.try_into().map_err(|_| Damaged("it ends early"))?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn length(&mut self) -> Result<usize, Damaged> {
        usize::try_from(self.number()?).map_err(|_| Damaged("a length that this machine cannot hold"))
    }

    fn text(&mut self) -> Result<&'a str, Damaged> {
        let length = self.length()?;
        std::str::from_utf8(self.take(length)?).map_err(|_| Damaged("a text that is none"))
    }
}
