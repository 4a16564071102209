//! Writes an archive of PTX modules: for the build script, and for the tests.

use super::archive::{MAGIC, Module, hash};

/// An archive of these modules, in this order. The same modules give the same bytes.
pub(crate) fn pack(modules: &[Module]) -> Vec<u8> {
    let layout = lay_out(modules);
    let mut archive = MAGIC.to_vec();
    archive.extend(hash(&layout).to_le_bytes());
    archive.extend(number(layout.len()));
    archive.extend(miniz_oxide::deflate::compress_to_vec(&layout, 9));
    archive
}

/// The archive's contents before compression.
pub(crate) fn lay_out(modules: &[Module]) -> Vec<u8> {
    let mut texts: Vec<&str> = Vec::new();
    let mut index = Vec::new();
    for module in modules {
        let known = texts.iter().position(|text| *text == module.body);
        let text = known.unwrap_or(texts.len());
        if known.is_none() {
            texts.push(&module.body);
        }
        for part in [&module.entry, &module.arch, &module.head] {
            put(&mut index, part);
        }
        index.extend(number(module.head_at));
        index.extend(number(text));
    }
    let mut layout = number(texts.len()).to_vec();
    for text in texts {
        put(&mut layout, text);
    }
    layout.extend(number(modules.len()));
    layout.extend(index);
    layout
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend(number(text.len()));
    out.extend(text.as_bytes());
}

/// Texts of kernels are far from 4 GiB; a length beyond would be found as damage.
fn number(value: usize) -> [u8; 4] {
    u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes()
}
