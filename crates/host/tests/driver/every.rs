//! The first call of the driver fails, then the second, and so on until none does: each time an error that names it, and
//! what was done; nothing panics, hangs or stays behind; the next time it works, or says that the context is lost.

use super::programs::{ALL, Left, Program};
use super::*;
use lanky_host::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// INVALID_VALUE, OUT_OF_MEMORY, NOT_READY, CONTEXT_IS_DESTROYED, one that no table has; and those that are fatal.
const CODES: [i32; 8] = [1, 2, 600, 709, 12_345, 214, 700, 719];
/// In the environment: every call with each of the codes, and not with three of them in turn.
const ALL_CODES: &str = "LANKY_TEST_ALL_CODES";
/// ECC_UNCORRECTABLE, ILLEGAL_ADDRESS, LAUNCH_FAILED: the end of the context.
const FATAL: [i32; 3] = [214, 700, 719];

/// Calls that give something back. Where the driver refuses one, that one thing stays.
const RELEASES: [&str; 7] = [
    "cuMemFree_v2",
    "cuMemFreeHost",
    "cuStreamDestroy_v2",
    "cuEventDestroy_v2",
    "cuModuleUnload",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
];
/// Calls around them, whose failure only puts the release off.
const BEFORE_A_RELEASE: [&str; 5] =
    ["cuCtxPushCurrent_v2", "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize", "cuCtxPopCurrent_v2"];
/// Calls whose failure leaves all as it is: a context that stays on a thread's stack, an owner that is not known, a
/// description of the device that the model completes.
const HARMLESS: [&str; 2] = ["cuCtxPopCurrent_v2", "cuCtxGetCurrent"];

/// One run of a program.
struct Outcome {
    result: Result<Left>,
    /// The function that was told to fail, and whether the program was done by then.
    hit: Option<String>,
    in_the_end: bool,
}

fn number(what: i32) -> u64 {
    asked(what).first().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Runs the program with the driver told `words`, and drops what it leaves.
fn run(program: &Program, words: &str) -> Outcome {
    tell(&format!("{words} memory=16000000 mmas={}", lanky_host::model::variants::CEILING_MMAS));
    let done = catch_unwind(AssertUnwindSafe(program.run)).unwrap_or_else(|_| panic!("{} panics", program.name));
    let in_the_end = asked(5).is_empty();
    let result = catch_unwind(AssertUnwindSafe(|| done.map(drop::<Left>)))
        .unwrap_or_else(|_| panic!("{} panics while it drops", program.name));
    let hit = asked(5).pop();
    Outcome { result: result.map(|()| Box::new(()) as Left), in_the_end: in_the_end && hit.is_some(), hit }
}

fn code_of(error: &Error) -> Option<i32> {
    match error {
        Error::Driver { code, .. }
        | Error::ContextLost { code, .. }
        | Error::Jit { code, .. }
        | Error::DriverSetup { code, .. }
        | Error::DeviceBusy { code, .. } => Some(*code),
        Error::OutOfMemory { .. } => Some(2),
        _ => None,
    }
}

/// What is wrong with an outcome, if anything.
fn wrong(program: &Program, code: i32, outcome: &Outcome) -> Option<String> {
    let hit = outcome.hit.as_deref()?;
    let is_released = RELEASES.contains(&hit) || program.lets_go && BEFORE_A_RELEASE.contains(&hit);
    // A device need not know every attribute, and says so with this code.
    let is_unknown = hit == "cuDeviceGetAttribute" && code == 1;
    let may_be_swallowed = outcome.in_the_end || is_released || is_unknown || HARMLESS.contains(&hit);
    match &outcome.result {
        Ok(_) if may_be_swallowed => None,
        Ok(_) => Some("it is swallowed".to_owned()),
        // The end of the context is then met by the next call.
        Err(Error::ContextLost { code: found, .. }) if may_be_swallowed && FATAL.contains(&code) && *found == code => {
            None
        }
        Err(error) => {
            let text = error.to_string();
            let function = hit.trim_end_matches("_v2");
            let is_named = text.contains(function) && text.contains(" in ");
            let is_told = code_of(error) == Some(code);
            (!is_named || !is_told || text.contains('\n')).then_some(text)
        }
    }
}

/// The counts that are larger than they should be.
fn more(than: &[String]) -> Vec<String> {
    let count = |text: &str| text.split_once('=').and_then(|(_, count)| count.parse::<i64>().ok()).unwrap_or(0);
    let now = living();
    now.iter()
        .zip(than)
        .filter(|(now, then)| count(now) > count(then))
        .map(|(now, then)| format!("{now}, not {then}"))
        .collect()
}

/// The driver's calls of a program in a new process, and what there is after two runs of it.
fn scouted(program: &Program) -> (u64, Vec<String>) {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("driver-scout-{}", std::process::id()));
    let scout = in_a_fork(20, || {
        let clean = |run: Outcome| run.result.map(drop).unwrap_or_else(|error| panic!("{}: {error}", program.name));
        clean(run(program, ""));
        let calls = number(6);
        clean(run(program, ""));
        assert_eq!((misused(), freed_in_use()), (vec![], vec![]), "{}", program.name);
        std::fs::write(&file, format!("{calls};{}", living().join(";"))).expect("the target folder can be written");
    });
    scout.unwrap_or_else(|error| panic!("{}: {error}", program.name));
    let text = std::fs::read_to_string(&file).expect("the scout wrote it");
    std::fs::remove_file(&file).expect("it is there");
    let mut words = text.split(';').map(str::to_owned);
    (words.next().and_then(|count| count.parse().ok()).expect("a count"), words.collect())
}

/// The call of that number fails in a new process.
fn fails_once(program: &Program, at: u64, code: i32, clean: &[String]) {
    let case = || format!("{}: call {at} fails with {code}", program.name);
    let outcome = run(program, &format!("call={at}:{code}"));
    let hit = outcome.hit.clone().unwrap_or_default();
    if let Some(wrong) = wrong(program, code, &outcome) {
        panic!("{} ({hit}): {wrong}", case());
    }
    assert!(hit == "cuCtxPopCurrent_v2" || number(7) == 0, "{} ({hit}): a context is left current", case());
    let is_lost = FATAL.contains(&code) && !(code == 214 && hit == "cuDevicePrimaryCtxRetain");
    calls();
    let again = run(program, "");
    if is_lost {
        let error = again.result.err().unwrap_or_else(|| panic!("{} ({hit}): the next time it works", case()));
        assert!(matches!(&error, Error::ContextLost { code: found, .. } if *found == code), "{}: {error:?}", case());
        // Where it was swallowed the next call has met it; from then on nothing is asked.
        calls();
        assert!(matches!(run(program, "").result, Err(Error::ContextLost { .. })), "{}", case());
        assert_eq!(calls(), [""; 0], "{} ({hit}): a lost context is left alone", case());
    } else {
        again.result.map(drop).unwrap_or_else(|error| panic!("{} ({hit}): the next time: {error}", case()));
        // What is of a context that is destroyed went with it.
        let stays = RELEASES.contains(&hit.as_str());
        let more = more(clean);
        // A device that does not tell all of itself may be given other kernels.
        let is_other = hit == "cuDeviceGetAttribute" && more.iter().all(|kind| kind.starts_with("modules"));
        assert!(
            more.is_empty() || is_other || stays && more.len() == 1 || code == 709,
            "{} ({hit}): it leaves {more:?}",
            case()
        );
    }
    assert_eq!((misused(), freed_in_use()), (vec![], vec![]), "{} ({hit})", case());
}

/// The codes that a call fails with: INVALID_VALUE, another that passes, and one that is fatal.
fn codes(at: u64) -> Vec<(u64, i32)> {
    let turn = at as usize;
    let codes = match std::env::var_os(ALL_CODES) {
        Some(_) => CODES.to_vec(),
        None => vec![CODES[0], CODES[1 + turn % 4], CODES[5 + turn % 3]],
    };
    codes.into_iter().map(|code| (at, code)).collect()
}

/// Each case in a fork of its own: what is opened, loaded or lost is so for a whole process.
fn every_call_fails(programs: &[Program]) {
    // The fake is there, with nothing in it.
    unpacked();
    assert!(living().iter().all(|count| count.ends_with("=0")));
    let mut wrong = Vec::new();
    for program in programs {
        let (calls, clean) = scouted(program);
        assert!(calls > 20, "{}: {calls} calls", program.name);
        for (at, code) in (1..=calls).step_by(program.step).flat_map(codes) {
            if let Err(error) = in_a_fork(20, || fails_once(program, at, code, &clean)) {
                wrong.push(format!("{}: call {at} of {calls} with {code}: {error}", program.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases, such as {:?}", wrong.len(), wrong[0]);
}

#[test]
fn every_call_of_programs_fails_once() {
    let (first, _) = ALL.split_at(7);
    with_driver("every::every_call_of_programs_fails_once", "", || {
        every_call_fails(first);
        Ok(())
    });
}

#[test]
fn every_call_of_other_programs_fails_once() {
    let (_, rest) = ALL.split_at(7);
    with_driver("every::every_call_of_other_programs_fails_once", "", || {
        every_call_fails(rest);
        Ok(())
    });
}
