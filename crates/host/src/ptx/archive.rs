//! Reads an archive of PTX modules. Also compiled into the build script.
//!
//! `LPX4`, the [`hash`] of all behind it (8 bytes), the lengths of the index, compressed and not, the index compressed, the
//! blocks compressed: raw LZMA, without a header and an end mark. A block is texts, one behind the other: to get at one of them a block is decompressed, not all of
//! the tens of megabytes. The index: the number of blocks and of each its lengths, compressed and not; the number of
//! texts and of each its block, where it starts there, its length; the number of modules and of each its entry,
//! architecture, head, the place of the head in the text, the text's index. Numbers are 4 bytes, the lowest first; words
//! are their length and their bytes. A head is the lines `.version` and `.target`, in which alone a kernel's modules may
//! differ. Texts are kept with their registers [relative](super::registers), the place of a head is that in PTX.

use super::registers;
use lzma_rust2::LzmaReader;
use std::io::Read;
use std::sync::OnceLock;

pub(crate) const MAGIC: &[u8; 4] = b"LPX4";
/// More than any index or block needs; a damaged length of one asks for no more memory than this.
const MOST_BYTES: usize = 1 << 28;
/// How LZMA packs: the bits of the last letter and of a position that tell which letter is next, and those of a position that tell
/// whether it is one that was seen. In texts it is the letters.
pub(crate) const LETTER_BITS: u32 = 4;
pub(crate) const LETTER_POSITION_BITS: u32 = 0;
pub(crate) const POSITION_BITS: u32 = 0;
/// As far back as LZMA looks for what it has seen, bytes.
pub(crate) const WINDOW_BYTES: u32 = 1 << 20;

/// An archive that is read as far as it is asked for.
pub(crate) struct Archive<'a> {
    blocks: Vec<Block<'a>>,
    modules: Vec<Module>,
}

/// Texts that are compressed together.
struct Block<'a> {
    packed: &'a [u8],
    length: usize,
    /// What is in it, once somebody has asked.
    texts: OnceLock<Result<String, Damaged>>,
}

/// One module: where its text is, which is kept without its head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) entry: String,
    /// `sm_90`
    pub(crate) arch: String,
    head: String,
    /// Where in the text the head belongs, bytes.
    head_at: usize,
    text: Place,
}

/// A text: its block, where it starts there, its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    block: usize,
    start: usize,
    length: usize,
}

/// Why an archive cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damaged(&'static str);

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the archive of kernels is damaged: {}", self.0)
    }
}

/// Finds damage, without decompressing what the kernels are in: for those who build, once, so that those who read need not.
#[cfg_attr(not(test), allow(dead_code, reason = "the build script has looked at what the library reads"))]
pub(crate) fn check(archive: &[u8]) -> Result<(), Damaged> {
    let mut reader = Reader(archive);
    if reader.take(MAGIC.len())? != MAGIC {
        return Err(Damaged("it does not begin as one"));
    }
    let (low, high) = (reader.number()?, reader.number()?);
    if hash(reader.0) != u64::from(high) << 32 | u64::from(low) {
        return Err(Damaged("its contents are not what was written"));
    }
    Archive::open(archive).map(|_| ())
}

impl<'a> Archive<'a> {
    /// Reads the index.
    pub(crate) fn open(archive: &'a [u8]) -> Result<Self, Damaged> {
        let mut outer = Reader(archive);
        if outer.take(MAGIC.len())? != MAGIC {
            return Err(Damaged("it does not begin as one"));
        }
        let (_, packed, length) = (outer.take(8)?, outer.length()?, outer.length()?);
        let index = decompressed(outer.take(packed)?, length)?;
        let mut index = Reader(&index);
        let blocks = index.list(|index| {
            let (packed, length) = (index.length()?, index.length()?);
            Ok(Block { packed: outer.take(packed)?, length, texts: OnceLock::new() })
        })?;
        let texts = index.list(|index| {
            let text = Place { block: index.length()?, start: index.length()?, length: index.length()? };
            let block = blocks.get(text.block).ok_or(Damaged("a text without a block"))?;
            let is_inside = text.start.checked_add(text.length).is_some_and(|end| end <= block.length);
            if is_inside { Ok(text) } else { Err(Damaged("a text beyond its block")) }
        })?;
        let modules = index.list(|index| {
            let [entry, arch, head] = [index.words()?, index.words()?, index.words()?];
            let (head_at, text) = (index.length()?, index.length()?);
            let text = *texts.get(text).ok_or(Damaged("a module without a text"))?;
            Ok(Module { entry, arch, head, head_at, text })
        })?;
        if index.0.is_empty() && outer.0.is_empty() {
            Ok(Archive { blocks, modules })
        } else {
            Err(Damaged("something follows the last module"))
        }
    }

    /// All modules, in their order.
    #[cfg_attr(not(test), allow(dead_code, reason = "the build script only checks"))]
    pub(crate) fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// A module's whole text.
    #[cfg_attr(not(test), allow(dead_code, reason = "as above"))]
    pub(crate) fn text(&self, module: &Module) -> Result<String, Damaged> {
        let Place { block, start, length } = module.text;
        let block = self.blocks.get(block).ok_or(Damaged("a text without a block"))?;
        let texts = block.texts.get_or_init(|| block.decompress()).as_ref().map_err(|damaged| *damaged)?;
        let body = texts.get(start..start + length).ok_or(Damaged("a text beyond its block"))?;
        let body = registers::absolute(body);
        let (before, after) = body.split_at_checked(module.head_at).ok_or(Damaged("a head outside of its text"))?;
        Ok(format!("{before}{}{after}", module.head))
    }
}

impl Block<'_> {
    fn decompress(&self) -> Result<String, Damaged> {
        String::from_utf8(decompressed(self.packed, self.length)?).map_err(|_| Damaged("a text that is none"))
    }
}

/// Bytes of which so many were compressed.
fn decompressed(packed: &[u8], length: usize) -> Result<Vec<u8>, Damaged> {
    if length > MOST_BYTES {
        return Err(Damaged("it claims to be larger than any"));
    }
    let whole = u64::try_from(length).map_err(|_| Damaged("it claims to be larger than any"))?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| Damaged("there is no memory for what it claims to be"))?;
    LzmaReader::new(packed, whole, LETTER_BITS, LETTER_POSITION_BITS, POSITION_BITS, WINDOW_BYTES, None)
        .and_then(|mut reader| reader.read_to_end(&mut bytes))
        .map_err(|_| Damaged("it cannot be decompressed"))?;
    if bytes.len() == length { Ok(bytes) } else { Err(Damaged("it is shorter than it says")) }
}

/// Of words of 8 bytes, whose upper bits are turned down before the next one: against damage, not against intent.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, part: &[u8]| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(0x0100_0000_01b3)
    };
    bytes.chunks(8).fold(bytes.len() as u64, step)
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

    fn words(&mut self) -> Result<String, Damaged> {
        let length = self.length()?;
        String::from_utf8(self.take(length)?.to_vec()).map_err(|_| Damaged("words that are none"))
    }

    /// Their number and each of them.
    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T, Damaged>) -> Result<Vec<T>, Damaged> {
        (0..self.number()?).map(|_| one(self)).collect()
    }
}
