//! Writes an archive of PTX modules: for the build script, and for the tests.

use super::archive::{LETTER_BITS, LETTER_POSITION_BITS, MAGIC, POSITION_BITS, WINDOW_BYTES, hash};
use super::registers;
use lzma_rust2::{LzmaOptions, LzmaWriter};
use std::io::{self, Write};
use std::thread;

/// A block ends with the text that makes it so long, bytes: shorter ones compress worse, longer ones take longer to read.
const BLOCK_BYTES: usize = 1 << 19;
/// How hard LZMA looks for what it has seen: harder ones take half as long again for 3%.
const LEVEL: u32 = 6;

/// A module, its head apart from the rest of its text.
#[derive(Debug, Clone)]
pub(crate) struct Module {
    pub(crate) entry: String,
    /// `sm_90`
    pub(crate) arch: String,
    head: String,
    /// Where in `body` the head belongs, bytes.
    head_at: usize,
    body: String,
}

impl Module {
    /// A module from its text.
    pub(crate) fn new(entry: &str, arch: &str, text: &str) -> Self {
        let head_at = text.find(".version").unwrap_or(0);
        let is_head = |line: &&str| line.starts_with(".version") || line.starts_with(".target");
        let head: String = text[head_at..].split_inclusive('\n').take_while(is_head).collect();
        let body = format!("{}{}", &text[..head_at], &text[head_at + head.len()..]);
        Self { entry: entry.to_string(), arch: arch.to_string(), head, head_at, body }
    }
}

/// An archive of these modules, in this order, equal texts once. The same modules give the same bytes.
pub(crate) fn pack(modules: &[Module]) -> io::Result<Vec<u8>> {
    let mut texts: Vec<&str> = Vec::new();
    let mut listed = Vec::new();
    for module in modules {
        let known = texts.iter().position(|text| *text == module.body);
        let text = known.unwrap_or(texts.len());
        if known.is_none() {
            texts.push(&module.body);
        }
        for part in [&module.entry, &module.arch, &module.head] {
            listed.extend(number(part.len()));
            listed.extend(part.as_bytes());
        }
        listed.extend([module.head_at, text].map(number).as_flattened());
    }

    let texts: Vec<String> = texts.into_iter().map(registers::relative).collect();
    let (blocks, places) = in_blocks(&texts);
    let packed = all_compressed(&blocks)?;
    let mut index = number(blocks.len()).to_vec();
    for (packed, block) in packed.iter().zip(&blocks) {
        index.extend([packed.len(), block.len()].map(number).as_flattened());
    }
    index.extend(number(places.len()));
    index.extend(places.iter().flat_map(|place| place.map(number)).flatten());
    index.extend(number(modules.len()));
    index.extend(listed);

    let packed_index = compressed(&index)?;
    let lengths = [packed_index.len(), index.len()].map(number);
    let contents = [lengths.as_flattened(), &packed_index, &packed.concat()].concat();
    Ok([&MAGIC[..], &hash(&contents).to_le_bytes(), &contents].concat())
}

/// Texts one behind the other in blocks, and of each its block, where it starts there and its length.
fn in_blocks(texts: &[String]) -> (Vec<String>, Vec<[usize; 3]>) {
    let (mut blocks, mut places): (Vec<String>, Vec<_>) = (Vec::new(), Vec::new());
    for text in texts {
        match blocks.last_mut().filter(|block| block.len() < BLOCK_BYTES) {
            Some(block) => {
                let start = block.len();
                block.push_str(text);
                places.push([blocks.len() - 1, start, text.len()]);
            }
            None => {
                places.push([blocks.len(), 0, text.len()]);
                blocks.push(text.to_string());
            }
        }
    }
    (blocks, places)
}

/// Each block compressed, in their order, by all processors: one alone takes 20 s for all kernels.
fn all_compressed(blocks: &[String]) -> io::Result<Vec<Vec<u8>>> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let each =
        |share: &[String]| share.iter().map(|block| compressed(block.as_bytes())).collect::<io::Result<Vec<_>>>();
    thread::scope(|scope| {
        let shares = blocks.chunks(blocks.len().div_ceil(threads).max(1));
        let running = shares.map(|share| thread::Builder::new().spawn_scoped(scope, move || each(share)));
        let running = running.collect::<io::Result<Vec<_>>>()?;
        let mut packed = Vec::with_capacity(blocks.len());
        for share in running {
            packed.extend(share.join().map_err(|_| io::Error::other("the compressor panicked"))??);
        }
        Ok(packed)
    })
}

fn compressed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut options = LzmaOptions::with_preset(LEVEL);
    (options.lc, options.lp, options.pb) = (LETTER_BITS, LETTER_POSITION_BITS, POSITION_BITS);
    options.dict_size = WINDOW_BYTES;
    let mut writer = LzmaWriter::new_no_header(Vec::new(), &options, false)?;
    writer.write_all(bytes)?;
    writer.finish()
}

/// Texts of kernels are far from 4 GiB; a length beyond would be found as damage.
fn number(value: usize) -> [u8; 4] {
    u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes()
}
