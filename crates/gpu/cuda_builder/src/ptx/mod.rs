//! Splits the PTX of a crate into one module an entry.
//!
//! A driver compiles a module when it is loaded, all entries of it; one module an entry makes a program pay for what it
//! launches only. A module holds the header, the entry, and what the entry refers to, directly or not, in the order of
//! the compiler's text (PTX wants declarations first).

mod items;

use items::{Item, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// A module with one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PtxModule {
    /// The symbol to launch.
    pub entry: String,
    /// The text of the module.
    pub ptx: String,
}

impl PtxModule {
    /// Says that the module is of this version of PTX (major, minor), where it says an older one: its text may then have
    /// instructions of that version, and its driver must know it.
    pub fn raise_version(&mut self, version: (u32, u32)) {
        let Some(line) = self.ptx.lines().find(|line| line.starts_with(".version ")) else { return };
        let Some((major, minor)) = line[".version ".len()..].trim().split_once('.') else { return };
        if matches!((major.parse(), minor.parse()), (Ok(major), Ok(minor)) if (major, minor) < version) {
            self.ptx = self.ptx.replacen(line, &format!(".version {}.{}", version.0, version.1), 1);
        }
    }
}

/// What is wrong with a PTX text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PtxError {
    /// Not the structure of PTX.
    #[error("line {line} of the PTX: {reason}")]
    Malformed {
        /// From 1.
        line: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// Two things of one name.
    #[error("the PTX defines {0} twice")]
    Twice(String),
    /// A function that is called and not there; nothing would link it.
    #[error("the kernel {entry} calls {function}, which nothing defines")]
    Unresolved {
        /// The entry.
        entry: String,
        /// The function.
        function: String,
    },
}

/// Functions that the driver provides.
const PROVIDED: &[&str] = &["vprintf", "malloc", "free", "__assertfail"];

/// Splits a PTX text into one module an entry, sorted by entry, and adds launch bounds (threads a block at most, blocks
/// an SM at least, 0 for no demand) where `launch_bounds` gives some for an entry that has none.
///
/// # Errors
/// [`PtxError::Malformed`] with the line if the text is not PTX, [`PtxError::Twice`] if it defines a name twice,
/// [`PtxError::Unresolved`] if an entry calls what neither the text nor the driver defines.
///
/// # Example
/// ```
/// let text = ".version 7.4\n.target sm_80\n.address_size 64\n\
///     .visible .entry one() { ret; }\n.visible .entry another() { ret; }\n";
/// let modules = lanky_cuda_builder::ptx::split(text, &|entry| (entry == "one").then_some((128, 2)))?;
/// assert_eq!([&modules[0].entry, &modules[1].entry], ["another", "one"]);
/// assert!(modules[1].ptx.contains(".maxntid 128, 1, 1") && !modules[1].ptx.contains("another"));
/// # Ok::<(), lanky_cuda_builder::ptx::PtxError>(())
/// ```
pub fn split(text: &str, launch_bounds: &dyn Fn(&str) -> Option<(u32, u32)>) -> Result<Vec<PtxModule>, PtxError> {
    let (header, items) = items::parse(text)?;
    let by_name = by_name(&items)?;
    let mut modules = Vec::new();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| item.kind == Kind::Entry) {
        let mut ptx = format!("{}\n", header.trim_end());
        for &needed in &needed(index, &items, &by_name)? {
            let text = items[needed].text;
            ptx.push('\n');
            match if needed == index { launch_bounds(item.name) } else { None } {
                Some(bounds) => ptx.push_str(&bounded(text, bounds)),
                None => ptx.push_str(text),
            }
            ptx.push('\n');
        }
        modules.push(PtxModule { entry: item.name.to_string(), ptx });
    }
    modules.sort_by(|one, other| one.entry.cmp(&other.entry));
    Ok(modules)
}

/// Each name's items: a function may be declared and then defined.
fn by_name<'a>(items: &[Item<'a>]) -> Result<BTreeMap<&'a str, Vec<usize>>, PtxError> {
    let mut names: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let before = names.entry(item.name).or_default();
        if item.kind != Kind::Declaration && before.iter().any(|&other| items[other].kind != Kind::Declaration) {
            return Err(PtxError::Twice(item.name.to_string()));
        }
        before.push(index);
    }
    Ok(names)
}

/// The items that an entry needs, itself included.
fn needed(entry: usize, items: &[Item], names: &BTreeMap<&str, Vec<usize>>) -> Result<BTreeSet<usize>, PtxError> {
    let mut needed = BTreeSet::from([entry]);
    let mut open = vec![entry];
    while let Some(index) = open.pop() {
        for name in items::identifiers(items[index].text) {
            let Some(found) = names.get(name).filter(|_| name != items[entry].name) else { continue };
            let defined = found.iter().any(|&other| items[other].kind != Kind::Declaration);
            if !defined && !PROVIDED.contains(&name) {
                let entry = items[entry].name.to_string();
                return Err(PtxError::Unresolved { entry, function: name.to_string() });
            }
            open.extend(found.iter().filter(|&&other| needed.insert(other)));
        }
    }
    Ok(needed)
}

/// An entry's text with the directives between parameters and body; ones that it has already stay.
fn bounded(text: &str, (threads, min_blocks): (u32, u32)) -> String {
    let (before, body) = text.split_at(items::body_at(text).unwrap_or(text.len()));
    if before.contains(".maxntid") {
        return text.to_string();
    }
    let at_least = if min_blocks == 0 { String::new() } else { format!(".minnctapersm {min_blocks}\n") };
    format!("{}\n.maxntid {threads}, 1, 1\n{at_least}{body}", before.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"//
// Generated by LLVM NVPTX Back-End
//

.version 7.8
.target sm_90
.address_size 64

.extern .shared .align 16 .b8 tile[];
.extern .func helper(.param .b32 x);
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.visible .const .align 4 .b8 table[8] = {1, 2, 3, 4};
.global .align 1 .b8 text[4] = {34, 125, 0};
	// .globl	zeta
.visible .entry zeta(
	.param .u64 .ptr .align 1 zeta_param_0
)
{
	.reg .b32 %r<3>;
	// helper and } in a comment are none
	{ // callseq
	call.uni helper, (x);
	}
	.pragma "nounroll } tile";
	ret;
}
.visible .entry alpha()
{
	mov.u32 %tile, tile;
	ret;
}
.func helper(.param .b32 x) // tile
{
	ld.const.u32 %r1, [table+4];
	call.uni (r), deeper, ();
	ret;
}
.weak .func (.param .b32 r) deeper()
.noreturn
{
	call (r), vprintf, (text, 0);
	ret;
}
"#;

    fn modules(bounds: &dyn Fn(&str) -> Option<(u32, u32)>) -> Vec<PtxModule> {
        split(TEXT, bounds).unwrap()
    }

    #[test]
    fn each_entry_gets_what_it_needs_and_no_more() {
        let modules = modules(&|_| None);
        let names: Vec<_> = modules.iter().map(|module| module.entry.as_str()).collect();
        assert_eq!(names, ["alpha", "zeta"]);
        let (alpha, zeta) = (&modules[0].ptx, &modules[1].ptx);
        for module in &modules {
            assert!(module.ptx.contains(".version 7.8\n.target sm_90\n.address_size 64\n"));
            assert_eq!(module.ptx.matches(".entry").count(), 1);
        }
        assert!(alpha.contains(".extern .shared .align 16 .b8 tile[];"));
        for absent in ["helper", "table", "vprintf", "zeta"] {
            assert!(!alpha.contains(absent), "{absent} in {alpha}");
        }
        assert!(!zeta.contains(".b8 tile[]"), "a name in a comment or a string is no use");
        let places: Vec<_> = [
            ".extern .func helper",
            "vprintf (",
            "table[8]",
            "text[4]",
            ".entry zeta",
            ".func helper(.param .b32 x) //",
            "deeper()",
        ]
        .map(|part| zeta.find(part).unwrap_or_else(|| panic!("{part} not in {zeta}")))
        .into();
        assert!(places.is_sorted(), "{places:?}");
    }

    #[test]
    fn launch_bounds_stand_between_parameters_and_body() {
        let modules = modules(&|entry| (entry == "zeta").then_some((128, 4)));
        assert!(modules[1].ptx.contains("zeta_param_0\n)\n.maxntid 128, 1, 1\n.minnctapersm 4\n{\n\t.reg"));
        assert!(!modules[0].ptx.contains(".maxntid"));
        assert_eq!(bounded(".entry x()\n{ ret; }", (64, 0)), ".entry x()\n.maxntid 64, 1, 1\n{ ret; }");
        let bound_before = ".entry x()\n.maxntid 32\n{ ret; }";
        assert_eq!(bounded(bound_before, (64, 1)), bound_before);
    }

    #[test]
    fn a_version_is_raised_and_never_lowered() {
        let raised = |from: &str, to: (u32, u32)| {
            let mut module = PtxModule { entry: "k".into(), ptx: format!("// .version\n{from}\n.target sm_90\n") };
            module.raise_version(to);
            module.ptx
        };
        assert_eq!(raised(".version 7.8", (8, 0)), "// .version\n.version 8.0\n.target sm_90\n");
        assert_eq!(raised(".version 7.8", (7, 10)), "// .version\n.version 7.10\n.target sm_90\n");
        for stays in [".version 8.3", ".version 8.0", ".version what", ""] {
            assert_eq!(raised(stays, (8, 0)), format!("// .version\n{stays}\n.target sm_90\n"));
        }
    }

    #[test]
    fn the_order_of_the_text_does_not_matter_for_the_order_of_modules() {
        assert_eq!(modules(&|_| None), modules(&|_| None));
        let swapped = TEXT.replace("zeta", "aaa");
        assert_eq!(split(&swapped, &|_| None).unwrap()[0].entry, "aaa");
    }

    #[test]
    fn a_call_of_nothing_is_found() {
        let text = TEXT.replace("deeper()\n.noreturn\n{", "other()\n{").replace(".func helper(.param .b32 x) //", "//");
        assert!(split(&text, &|_| None).is_err());
        let text = ".version 7.8\n.extern .func gone();\n.entry k() { call gone, (); }\n";
        let error = split(text, &|_| None).unwrap_err();
        assert_eq!(error, PtxError::Unresolved { entry: "k".into(), function: "gone".into() });
    }

    #[test]
    fn text_that_is_not_ptx_is_an_error() {
        for text in [".entry k() { ret;", ".visible .entry {}", ".global .b8 x[3]", ".entry k() }", ".entry k() \"{"] {
            assert!(matches!(split(text, &|_| None), Err(PtxError::Malformed { .. })), "{text}");
        }
        assert_eq!(split("", &|_| None), Ok(vec![]));
        let twice = ".entry k() {}\n.entry k() {}";
        assert_eq!(split(twice, &|_| None), Err(PtxError::Twice("k".into())));
    }
}
