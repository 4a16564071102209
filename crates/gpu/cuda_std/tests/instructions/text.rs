//! The PTX, as text and through the assembler.

use crate::modules::{self, compiled};
use crate::skip;
use crate::table::{Case, table};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is wrong with a kernel's PTX, if anything.
fn fault(case: &Case, ptx: &str) -> Option<String> {
    if let Some(missing) = case.instructions.iter().find(|instruction| !has(ptx, instruction)) {
        return Some(format!("{}: no `{missing}` in\n{ptx}", case.entry));
    }
    let words = || ptx.split(|sign: char| sign.is_whitespace() || matches!(sign, ';' | '(' | '{'));
    let forbidden = |word: &str| word.starts_with(".local") || word.starts_with("call") || word.starts_with(".func");
    if let Some(word) = words().find(|word| forbidden(word)) {
        return Some(format!("{}: `{word}` in\n{ptx}", case.entry));
    }
    let foreign = ptx.lines().find(|line| line.starts_with(".extern") && !line.starts_with(".extern .shared"));
    foreign.map(|line| format!("{}: {line}", case.entry))
}

/// Whether the text has the instruction, and not one that it is the beginning or the end of.
fn has(ptx: &str, instruction: &str) -> bool {
    ptx.match_indices(instruction).any(|(start, _)| {
        let before = ptx[..start].chars().next_back();
        let after = ptx[start + instruction.len()..].chars().next();
        before.is_some_and(char::is_whitespace) && after.is_some_and(|sign| sign.is_whitespace() || ",;".contains(sign))
    })
}

#[test]
fn each_wrapper_is_the_instruction_that_it_says() {
    let compiled = match compiled() {
        Ok(compiled) => compiled,
        Err(reason) => return skip("each_wrapper_is_the_instruction_that_it_says", reason),
    };
    let table = table();
    for (arch, modules) in compiled.by_arch() {
        let built: Vec<_> = modules.iter().map(|module| module.entry.as_str()).collect();
        let known: BTreeSet<_> =
            table.iter().filter(|case| arch == "sm_90" || !case.needs_sm_90).map(|case| case.entry).collect();
        assert_eq!(built, known.into_iter().collect::<Vec<_>>(), "{arch}");
        for case in &table {
            let Some(module) = modules.iter().find(|module| module.entry == case.entry) else { continue };
            let version = match arch {
                "sm_80" => "7.4",
                _ if case.entry.starts_with("bulk_") => "8.0",
                _ => "7.8",
            };
            assert!(module.ptx.contains(&format!(".version {version}\n.target {arch}\n")), "{}", module.ptx);
            if let Some(fault) = fault(case, &module.ptx) {
                panic!("{arch}: {fault}");
            }
        }
    }
}

/// The check above finds an instruction that is another's beginning, local memory, and calls.
#[test]
fn wrong_ptx_is_found() {
    let case = Case::new("k", &["ld.global.nc.b32", "%tid.x"]);
    let right = ".visible .entry k(\n)\n{\n\tmov.u32 \t%r1, %tid.x;\n\t@p ld.global.nc.b32 %r1, [%rd1];\n\tret;\n}\n";
    assert_eq!(fault(&case, right), None);
    for (part, wrong) in [
        ("ld.global.nc.b32", "ld.global.nc.b32x2"),
        ("ld.global.nc.b32", "ld.global.b32"),
        ("%tid.x", "%ntid.x"),
        ("\tret;", "\t.local .align 8 .b8 __local_depot0[16];\n\tret;"),
        ("\tret;", "\tcall.uni (r), f, ();\n\tret;"),
        (".visible", ".extern .func f();\n.visible"),
        (".visible", ".extern .global .b8 table[];\n.visible"),
    ] {
        assert_ne!(fault(&case, &right.replace(part, wrong)), None, "{wrong}");
    }
}

/// The mma takes part of all lanes: the compiler must not move it behind a branch that some of them take.
#[test]
fn the_matrix_instruction_stays_before_the_branch() {
    let Ok(compiled) = compiled() else { return skip("the_matrix_instruction_stays_before_the_branch", "no PTX") };
    let module = compiled.sm_90.iter().find(|module| module.entry == "mma_for_some").expect("it is in the table");
    let place = |text: &str| module.ptx.find(text).unwrap_or_else(|| panic!("no `{text}` in {}", module.ptx));
    assert!(place("mma.sync") < place(" bra "), "{}", module.ptx);
}

/// The names of all functions that stand for instructions, as the sources declare them.
fn wrappers() -> BTreeSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut names = BTreeSet::new();
    let instructions = ["arithmetic", "atomic", "bulk", "copy", "word"].map(|name| format!("ptx/{name}.rs"));
    for file in ["thread.rs", "warp.rs", "memory.rs"].map(str::to_string).into_iter().chain(instructions) {
        let text = std::fs::read_to_string(source.join(file)).expect("the sources are beside this test");
        // Plain ones, and those that a macro makes, which are named behind their documentation.
        for after in ["pub fn ", "pub unsafe fn ", "*/"].into_iter().flat_map(|mark| text.split(mark).skip(1)) {
            let name = after.trim_start().split(|sign: char| !(sign.is_alphanumeric() || sign == '_')).next();
            names.extend(name.filter(|name| !name.is_empty()).map(str::to_string));
        }
    }
    // What an emulator makes its operands with.
    names.remove("on_host");
    names
}

#[test]
fn no_wrapper_is_left_out() {
    let folder = modules::kernels().join("src");
    if !folder.is_dir() {
        return skip("no_wrapper_is_left_out", "the kernels are not beside this test");
    }
    let wrappers = wrappers();
    for known in ["thread_idx_x", "sync_threads_or", "warp_shuffle_up", "warp_vote_any", "stream_if", "red_add_f64"] {
        assert!(wrappers.contains(known), "the sources are not read right: {known}");
    }
    let mut kernels = String::new();
    for item in std::fs::read_dir(folder).expect("it is there") {
        kernels += &std::fs::read_to_string(item.expect("a file").path()).expect("a text");
    }
    let used: BTreeSet<_> = kernels.split(|sign: char| !(sign.is_alphanumeric() || sign == '_')).collect();
    let left_out: Vec<_> = wrappers.iter().filter(|name| !used.contains(name.as_str())).collect();
    assert!(left_out.is_empty(), "no kernel uses {left_out:?}");
}

/// A ptxas that is named, installed, or where the project's checks put one.
fn ptxas() -> Option<PathBuf> {
    let wheel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/ptxas/nvidia/cu13/bin/ptxas");
    let runs =
        |path: &PathBuf| Command::new(path).arg("--version").output().is_ok_and(|output| output.status.success());
    let named = std::env::var_os("LANKY_PTXAS").filter(|path| !path.is_empty()).map(PathBuf::from);
    named.into_iter().chain(["ptxas".into(), wheel]).find(runs)
}

#[test]
fn an_assembler_takes_every_instruction() {
    const NAME: &str = "an_assembler_takes_every_instruction";
    let compiled = match compiled() {
        Ok(compiled) => compiled,
        Err(reason) => return skip(NAME, reason),
    };
    let Some(ptxas) = ptxas() else { return skip(NAME, "there is no ptxas; LANKY_PTXAS may name one") };
    let assemble = |entry: &str, ptx: &str, arch: &str| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{entry}.ptx"));
        std::fs::write(&path, ptx).expect("the folder is there");
        let (input, arch) = (path.as_os_str(), format!("-arch={arch}"));
        let output = Command::new(&ptxas).args(["-v", &arch, "-o", "/dev/null"]).arg(input).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.success() && said.contains(" 0 bytes stack frame, 0 bytes spill stores"), said.into_owned())
    };
    for (arch, modules) in compiled.by_arch() {
        for module in modules {
            let (fine, said) = assemble(&module.entry, &module.ptx, arch);
            assert!(fine, "{} for {arch}: {said}\n{}", module.entry, module.ptx);
        }
    }
    let planted = compiled.sm_80[0].ptx.replace("\tret;", "\tmma.sync.aligned.m16n8k17 %rd1;\n\tret;");
    assert!(!assemble("planted", &planted, "sm_80").0, "it takes anything");
}
