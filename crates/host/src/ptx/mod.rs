//! The kernels that are carried: PTX, one module an entry, for each architecture that has the entry (those of the f64
//! matrix units exist for sm_90 alone). No GPU and no driver is needed to look at them.
//!
//! ```
//! for (entry, arch, text) in lanky_host::ptx::all() {
//!     assert!(text.contains(entry) && text.contains(arch));
//! }
//! ```

mod archive;
#[cfg(test)]
mod writer;

use archive::Module;
use std::sync::OnceLock;

/// Whether the kernels were compiled with this library (`built from source`) or are the ones that its source carries
/// (`committed`).
pub const ORIGIN: &str = env!("LANKY_PTX_ORIGIN");

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.lpx"));

/// All modules, unpacked once. The build script has unpacked the same bytes, so there is no error to expect.
fn modules() -> &'static [Module] {
    static MODULES: OnceLock<Vec<Module>> = OnceLock::new();
    MODULES.get_or_init(|| archive::unpack(PACKED).unwrap_or_default())
}

/// The module of an entry that suits a device of this compute capability best: of all architectures that the device
/// accepts, the newest. `None` if there is no such entry, or none for a device that old. The text is a new one; the first
/// call, of this or of [`all`], unpacks the archive.
pub fn module(entry: &str, compute_capability: (u32, u32)) -> Option<String> {
    best(modules(), entry, compute_capability).map(Module::text)
}

/// Each module: its entry, its architecture (`sm_90`), its text; sorted by entry, then by architecture.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    modules().iter().map(|module| (module.entry.as_str(), module.arch.as_str(), module.text()))
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

    fn example() -> Vec<Module> {
        let module = |entry: &str, arch: &str, version: &str| {
            let text = format!(
                "//\n\n.version {version}\n.target {arch}\n.address_size 64\n\n.visible .entry {entry}() {{}}\n"
            );
            Module::new(entry, arch, &text)
        };
        vec![module("a", "sm_80", "7.4"), module("a", "sm_90", "8.0"), module("b", "sm_90", "8.0")]
    }

    #[test]
    fn the_newest_architecture_that_a_device_accepts_is_taken() {
        let modules = example();
        let arch = |entry, capability| best(&modules, entry, capability).map(|module| module.arch.as_str());
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
        let whole = archive::unpack(PACKED).expect("the archive that was built in");
        assert_eq!(whole.len(), all().count());
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
        let modules = example();
        let packed = writer::pack(&modules);
        assert_eq!(archive::unpack(&packed).unwrap(), modules);
        assert!(modules[0].text().contains(".version 7.4\n.target sm_80\n.address_size 64\n"));
        assert_eq!(writer::pack(&modules), packed, "the same bytes each time");
        let texts = |modules: &[Module]| writer::lay_out(modules).windows(6).filter(|part| part == b".entry").count();
        assert_eq!(texts(&modules), 2);
        assert_eq!(archive::unpack(&writer::pack(&[])).unwrap(), []);
        let headless = Module::new("x", "sm_80", "no header");
        assert_eq!(headless.text(), "no header");
    }

    #[test]
    fn a_damaged_archive_is_an_error() {
        let packed = writer::pack(&example());
        for length in 0..packed.len() {
            assert!(archive::unpack(&packed[..length]).is_err(), "{length}");
        }
        for at in 0..packed.len() {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x10;
            // The last byte has bits that nobody reads, unless what is compressed ends with it.
            let is_same = archive::unpack(&damaged).is_ok_and(|found| found == example() && at + 1 == packed.len());
            assert!(is_same || archive::unpack(&damaged).is_err(), "{at}");
        }
    }
}
