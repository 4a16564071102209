//! The kernels that are carried: PTX, one module an entry, for each architecture that has the entry (those of the f64
//! matrix units exist for sm_90 alone). No GPU and no driver is needed to look at them.
//!
//! ```
//! for (entry, arch, text) in lanky_host::ptx::all() {
//!     assert!(text.contains(entry) && text.contains(arch));
//! }
//! ```

mod archive;
mod registers;
#[cfg(test)]
mod writer;

use archive::{Archive, Module};
use std::sync::LazyLock;

/// Whether the kernels were compiled with this library (`built from source`) or are the ones that its source carries
/// (`committed`).
pub const ORIGIN: &str = env!("LANKY_PTX_ORIGIN");

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.lpx"));

/// The build script has checked the same bytes, so there is no error to expect.
static ARCHIVE: LazyLock<Option<Archive<'_>>> = LazyLock::new(|| Archive::open(PACKED).ok());

fn modules() -> &'static [Module] {
    ARCHIVE.as_ref().map_or(&[], Archive::modules)
}

fn text(module: &Module) -> Option<String> {
    ARCHIVE.as_ref()?.text(module).ok()
}

/// The module of an entry that suits a device of this compute capability best: of all architectures that the device
/// accepts, the newest. `None` if there is no such entry, or none for a device that old. The text is a new one; the first
/// call for an entry decompresses it and its neighbours, 0.5 MB or so, which are kept: 89 MB where all are asked for.
pub fn module(entry: &str, compute_capability: (u32, u32)) -> Option<String> {
    best(modules(), entry, compute_capability).and_then(text)
}

/// Each module: its entry, its architecture (`sm_90`), its text; sorted by entry, then by architecture.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    modules().iter().filter_map(|module| Some((module.entry.as_str(), module.arch.as_str(), text(module)?)))
}

fn best<'a>(modules: &'a [Module], entry: &str, (major, minor): (u32, u32)) -> Option<&'a Module> {
    let device = major.checked_mul(10)?.checked_add(minor)?;
    let accepted = modules.iter().filter(|module| module.entry == entry);
    accepted
        .filter_map(|module| Some((capability(&module.arch)?, module)))
        .filter(|(needed, _)| *needed <= device)
        .max_by_key(|(needed, _)| *needed)
        .map(|(_, module)| module)
}

/// 90 of `sm_90`.
fn capability(arch: &str) -> Option<u32> {
    arch.strip_prefix("sm_")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts() -> [(&'static str, &'static str, String); 3] {
        let module = |entry, arch, version: &str| {
            let text = format!(
                "//\n\n.version {version}\n.target {arch}\n.address_size 64\n\n.visible .entry {entry}() {{}}\n"
            );
            (entry, arch, text)
        };
        [module("a", "sm_80", "7.4"), module("a", "sm_90", "8.0"), module("b", "sm_90", "8.0")]
    }

    fn packed(texts: &[(&str, &str, String)]) -> Vec<u8> {
        let modules: Vec<_> = texts.iter().map(|(entry, arch, text)| writer::Module::new(entry, arch, text)).collect();
        writer::pack(&modules).expect("an archive")
    }

    /// What is read of an archive that is not looked at before.
    fn unpacked(packed: &[u8]) -> Result<Vec<(String, String, String)>, archive::Damaged> {
        let archive = Archive::open(packed)?;
        let one = |module: &Module| Ok((module.entry.clone(), module.arch.clone(), archive.text(module)?));
        archive.modules().iter().map(one).collect()
    }

    fn owned(texts: &[(&str, &str, String)]) -> Vec<(String, String, String)> {
        texts.iter().map(|(entry, arch, text)| (entry.to_string(), arch.to_string(), text.clone())).collect()
    }

    #[test]
    fn the_newest_architecture_that_a_device_accepts_is_taken() {
        let packed = packed(&texts());
        let archive = Archive::open(&packed).expect("an archive");
        let modules = archive.modules();
        let arch = |entry, capability| best(modules, entry, capability).map(|module| module.arch.as_str());
        assert_eq!(arch("a", (8, 0)), Some("sm_80"));
        assert_eq!(arch("a", (8, 9)), Some("sm_80"));
        assert_eq!(arch("a", (9, 0)), Some("sm_90"));
        assert_eq!(arch("a", (12, 0)), Some("sm_90"));
        assert_eq!(arch("a", (7, 5)), None);
        assert_eq!(arch("b", (8, 0)), None);
        assert_eq!(arch("c", (9, 0)), None);
        assert_eq!(arch("a", (u32::MAX, 0)), None);
    }

    #[test]
    fn what_is_carried_is_whole() {
        assert_eq!(archive::check(PACKED), Ok(()));
        assert_eq!(Archive::open(PACKED).map(|archive| archive.modules().len()), Ok(all().count()));
        for (entry, arch, text) in all() {
            assert!(text.contains(&format!(".visible .entry {entry}(")), "{entry}");
            let version = if arch == "sm_90" { "8.0" } else { "7.4" };
            assert!(
                text.contains(&format!(".version {version}\n.target {arch}\n.address_size 64\n")),
                "{entry} {arch}"
            );
        }
    }

    #[test]
    fn what_is_packed_is_unpacked_and_equal_text_is_stored_once() {
        let texts = texts();
        let archive = packed(&texts);
        assert_eq!(unpacked(&archive), Ok(owned(&texts)));
        assert_eq!(packed(&texts), archive, "the same bytes each time");
        let long = (
            "c",
            "sm_90",
            format!(".version 8.0\n{}", "// so long that a kernel's text is no longer\n".repeat(50_000)),
        );
        let alike = |arch, version| ("c", arch, long.2.replace("8.0", version));
        let pair = packed(&[alike("sm_80", "7.4"), long.clone()]);
        assert!(pair.len() < packed(std::slice::from_ref(&long)).len() + 100, "equal but for the head");
        for texts in [
            &[] as &[_],
            &[("x", "sm_80", "no header, né".to_string()), ("ü", "sm_90", "é".to_string())],
            &[long.clone(), texts[0].clone(), long],
        ] {
            assert_eq!((archive::check(&packed(texts)), unpacked(&packed(texts))), (Ok(()), Ok(owned(texts))));
        }
    }

    /// Nor is one of blocks longer than what the decompressor looks back on, whatever it makes of damage.
    #[test]
    fn a_damaged_block_is_read_without_a_panic() {
        let line = |line: u32| format!("mov.u32 %r1, {};\n", line.wrapping_mul(2_654_435_761));
        let text: String = (0..90_000).map(line).collect();
        assert!(text.len() > archive::WINDOW_BYTES as usize, "{} bytes", text.len());
        let whole = packed(&[("a", "sm_90", text)]);
        for at in (0..whole.len()).step_by(whole.len() / 40) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            let _ = unpacked(&damaged);
        }
    }

    #[test]
    fn a_damaged_archive_is_an_error() {
        let whole = packed(&texts());
        assert_eq!(archive::check(&whole), Ok(()));
        for length in 0..whole.len() {
            assert!(archive::check(&whole[..length]).is_err(), "{length}");
            let _ = unpacked(&whole[..length]);
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                assert!(archive::check(&damaged).is_err(), "{at}");
                // Nobody has looked at it before: an error or other words.
                let _ = unpacked(&damaged);
                // Nor do two bits make up for each other.
                for again in [8, 16, 64].map(|further| at + further).into_iter().filter(|again| *again < whole.len()) {
                    let mut twice = damaged.clone();
                    twice[again] ^= 1 << bit;
                    assert!(archive::check(&twice).is_err(), "{at} and {again}");
                }
            }
        }
    }
}
