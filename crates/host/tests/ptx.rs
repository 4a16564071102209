//! The PTX that is carried, read without a GPU.
//!
//! ptxas looks at registers and stack frames (`.ci/run ptxas`); here is what can be seen in the text.

use lanky_host::model::variants::splits_f32;
use lanky_host::ptx;
use std::collections::BTreeSet;

/// What must not be in a module, each with the reason; `None` if all is well.
fn fault(entry: &str, text: &str) -> Option<String> {
    let defined: BTreeSet<&str> = functions(text).collect();
    let instructions = text.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    for line in instructions {
        let opcode = operation(line);
        let parts: Vec<&str> = opcode.split('.').collect();
        let of_floats = parts.iter().any(|part| matches!(*part, "f32" | "f64" | "f16" | "f32x2"));
        let reason = match parts.as_slice() {
            _ if line.contains(".local ") => "has a depot in local memory",
            ["ld" | "st", ..] if !has_space(&parts) => "touches memory by a generic address",
            ["ld" | "st", rest @ ..] if rest.contains(&"local") => "touches local memory",
            rest if of_floats && rest.contains(&"ftz") => "flushes denormal numbers",
            rest if of_floats && rest.contains(&"approx") => "approximates",
            rest if of_floats && rest.contains(&"rz") => "rounds to zero",
            rest if ["tf32", "bf16", "f16"].iter().any(|few| rest.contains(few)) && !splits_f32(entry) => {
                "has few bits"
            }
            // Without a word on rounding an assembler may make one operation of two, and another one need not.
            ["add" | "sub" | "mul", rest @ ..] if of_floats && !rest.contains(&"rn") => "may be fused",
            ["call", ..] if !callee(line).is_some_and(|name| defined.contains(name)) => "calls what is not there",
            _ => continue,
        };
        return Some(format!("{entry} {reason}: {line}"));
    }
    None
}

/// `ld.global.f64` of `@%p1 ld.global.f64 %fd1, [%rd1];`
fn operation(line: &str) -> &str {
    let line = line.trim_start_matches('{').trim_start();
    let line =
        if line.starts_with('@') { line.split_once(' ').map_or("", |(_, rest)| rest).trim_start() } else { line };
    line.split([' ', '\t', ';']).next().unwrap_or_default()
}

fn has_space(parts: &[&str]) -> bool {
    parts.iter().any(|part| ["global", "shared", "shared::cta", "param", "const", "local"].contains(part))
}

/// Functions with a body; the text is one that a compiler made, a `.func` a line.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.contains(".func") && !line.trim_end().ends_with(';')).filter_map(|line| {
        let after = line.split_once(".func")?.1.trim_start();
        let name = after.strip_prefix('(').map_or(Some(after), |rest| Some(rest.split_once(')')?.1))?;
        Some(name.split('(').next()?.trim())
    })
}

/// `f` of `call.uni (r), f, (a);`
fn callee(line: &str) -> Option<&str> {
    let operands = operation(line);
    let after = line.split_once(operands)?.1.trim_start();
    let name = after.strip_prefix('(').map_or(Some(after), |rest| Some(rest.split_once("),")?.1))?;
    Some(name.split([',', ';']).next()?.trim())
}

/// Whether shared memory is read 128 bits at a time.
fn reads_shared_wide(text: &str) -> bool {
    let wide = |opcode: &str| {
        let is_shared = opcode.starts_with("ld.shared.") || opcode.starts_with("ld.shared::cta.");
        let wide_two = ["b64", "u64", "f64"].iter().any(|kind| opcode.ends_with(&format!(".v2.{kind}")));
        let wide_four = ["b32", "u32", "f32"].iter().any(|kind| opcode.ends_with(&format!(".v4.{kind}")));
        is_shared && (wide_two || wide_four)
    };
    text.lines().any(|line| wide(operation(line.trim())))
}

/// The architectures that an entry is carried for.
fn architectures(entry: &str) -> &'static [&'static str] {
    if model::variants::since(entry) > (8, 0) { &["sm_90"] } else { &["sm_80", "sm_90"] }
}

#[test]
fn the_modules_are_those_of_the_table_for_both_architectures() {
    let carried: Vec<(&str, &str)> = ptx::all().map(|(entry, arch, _)| (entry, arch)).collect();
    let mut wanted: Vec<(&str, &str)> =
        model::entries().flat_map(|entry| architectures(entry).iter().map(move |arch| (entry, *arch))).collect();
    wanted.sort_unstable();
    assert_eq!(carried, wanted);
    for entry in model::entries() {
        let text = |capability| ptx::module(entry, capability).expect(entry);
        assert!(text((9, 0)).contains(".version 8.0\n.target sm_90\n.address_size 64\n"), "{entry}");
        if architectures(entry).contains(&"sm_80") {
            assert!(text((8, 6)).contains(".version 7.4\n.target sm_80\n.address_size 64\n"), "{entry}");
        } else {
            assert_eq!(ptx::module(entry, (8, 6)), None);
        }
        assert_eq!(ptx::module(entry, (7, 5)), None);
    }
}

/// What [`lanky_host::Determinism::AcrossGpus`] stands on: the same instructions, whatever the GPU.
#[test]
fn what_all_gpus_have_is_the_same_on_each() {
    let products = model::VARIANTS.iter().map(|variant| variant.entry);
    let dtypes = [model::Dtype::F32, model::Dtype::F64, model::Dtype::C64, model::Dtype::C128];
    let sums = dtypes.map(|dtype| [model::sum_slots(dtype), model::variants::reduce_slots(dtype)]);
    let mut compared = 0;
    for entry in products.chain(sums.into_iter().flatten()).filter(|entry| model::variants::since(entry) <= (8, 0)) {
        let body = |capability| {
            let text = ptx::module(entry, capability).expect(entry).to_string();
            unnumbered(text.split_once(".address_size 64\n").expect(entry).1)
        };
        assert!(body((8, 0)) == body((9, 0)), "{entry} differs");
        compared += 1;
    }
    assert!(compared > 200, "{compared}");
    assert_ne!(unnumbered("bra $L__BB1_2;"), unnumbered("bra $L__BB1_3;"));
    assert_ne!(unnumbered("{ // callseq 1, 0"), unnumbered("{ // callseq 1, 1"));
}

/// A function's labels without its number among those that were compiled with it, `$L__BB244_2`, and calls without theirs, `// callseq 81, 0`.
fn unnumbered(body: &str) -> String {
    ["$L__BB", "// callseq "].into_iter().fold(body.to_owned(), |body, mark| {
        let mut parts = body.split(mark);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + mark + part.trim_start_matches(|c: char| c.is_ascii_digit()))
    })
}

#[test]
fn a_module_has_one_entry_with_its_launch_bounds() {
    for (entry, arch, text) in ptx::all() {
        assert_eq!(text.matches(".entry ").count(), 1, "{entry} {arch}");
        assert!(text.contains(&format!(".visible .entry {entry}(")), "{entry} {arch}");
        let bounds = model::launch_bounds(entry).expect(entry);
        let at_least = match bounds.min_blocks {
            0 => String::new(),
            blocks => format!(".minnctapersm {blocks}\n"),
        };
        let directives = format!(")\n.maxntid {}, 1, 1\n{at_least}{{", bounds.threads);
        assert_eq!((text.matches(&directives).count(), text.matches(".maxntid").count()), (1, 1), "{entry} {arch}");
    }
}

/// m, n, k are 32 bits wide, as the launches give them; then a, its two strides, b, its two, alpha and beta, c, its
/// two, the length of a slot, and what is conjugated.
#[test]
fn products_have_the_parameters_that_are_launched() {
    for variant in model::VARIANTS {
        let scalar = format!("b{}", variant.dtype.bytes() * 8);
        let text = ptx::module(variant.entry, (9, 0)).expect(variant.entry);
        let list = text.split_once(".entry ").and_then(|(_, rest)| rest.split_once(")\n")).expect(variant.entry).0;
        let kinds: Vec<String> = list
            .lines()
            .filter_map(|line| line.trim().strip_prefix(".param ."))
            .map(|line| {
                match line.split_once(".b8 ").and_then(|(_, name)| name.split(['[', ']']).nth(1)?.parse::<u32>().ok()) {
                    // A complex number: so many bytes.
                    Some(bytes) => format!("b{}", 8 * bytes),
                    None => line.split([' ', '\t']).next().unwrap_or_default().replace(['u', 'f', 's'], "b"),
                }
            })
            .collect();
        let mut wanted = vec!["b32"; 3];
        wanted.extend(["b64"; 6]);
        wanted.extend([scalar.as_str(); 2]);
        wanted.extend(["b64"; 4]);
        // Of two tall matrices the workspace in place of the length of a slot, and how to finish.
        wanted.extend(variant.is_reduced().then_some("b32"));
        // What is conjugated, and behind it the workspace of what is no product of two tall matrices.
        wanted.push("b32");
        wanted.extend((!variant.is_reduced()).then_some("b64"));
        assert_eq!(kinds, wanted, "{}", variant.entry);
    }
}

#[test]
fn shared_memory_is_read_wide_where_the_table_says_so() {
    for variant in model::VARIANTS {
        for capability in [(8, 0), (9, 0)] {
            if capability < variant.since() {
                continue;
            }
            let text = ptx::module(variant.entry, capability).expect(variant.entry);
            assert_eq!(reads_shared_wide(&text), variant.wide_shared, "{} {capability:?}", variant.entry);
        }
    }
}

#[test]
fn nothing_is_slow_inexact_or_missing() {
    let faults: Vec<String> = ptx::all().filter_map(|(entry, _, text)| fault(entry, &text)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_folder_of_the_machine_is_in_the_text() {
    for (entry, arch, text) in ptx::all() {
        for part in [".rs", "/src", ".file", "/home", "/root", env!("CARGO_MANIFEST_DIR")] {
            assert!(!text.contains(part), "{part} in {entry} {arch}");
        }
    }
}

#[test]
fn each_fault_is_found() {
    for line in [
        "ld.f64 %fd1, [%rd1];",
        "@%p1 st.v2.b64 [%rd1], {%rd2, %rd3};",
        "\t.local .align 8 .b8 __local_depot0[64];",
        "st.local.b32 [%rd1], %r1;",
        "add.rn.ftz.f32 %f1, %f2, %f3;",
        "{ rcp.approx.f32 %f1, %f2; }",
        "fma.rz.f64 %fd1, %fd2, %fd3, %fd4;",
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};",
        "call.uni gone, (x);",
        "@%p2 call.uni (r), gone, (x);",
    ] {
        assert!(fault("k", line).is_some(), "{line}");
    }
    for line in [
        "ld.global.nc.f64 %fd1, [%rd1];",
        "@%p1 ld.shared.v2.b64 {%rd1, %rd2}, [%r1];",
        "ld.param.b64 %rd1, [k_param_0];",
        "cvt.rzi.u32.f32 %r1, %f1;",
        "// call gone",
        ".func (.param .b32 r) there(.param .b32 x)\n{\n}\ncall.uni (r), there, (x);",
        ".func there()\n{\n}\ncall there;",
    ] {
        assert_eq!(fault("k", line), None, "{line}");
    }
    assert!(reads_shared_wide("@%p1 ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r5];"));
    assert!(!reads_shared_wide("ld.shared.v2.b32 {%r1, %r2}, [%r5];\nld.global.v2.b64 {%rd1, %rd2}, [%rd3];"));
}
