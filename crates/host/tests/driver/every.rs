//! The first call of the driver fails, then the second, and so on until none does: each time an error that names it, and
//! what was done; nothing panics, hangs or stays behind; the next time it works, or says that the context is lost. So too
//! where all calls after it fail as well, until the driver is well again.

use super::programs::{ALL, Left, Program};
use super::*;
use lanky_host::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// INVALID_VALUE, OUT_OF_MEMORY, NOT_READY, CONTEXT_IS_DESTROYED, one that no table has, INVALID_DEVICE, INVALID_PTX; and those
/// that are fatal.
const CODES: [i32; 10] = [1, 2, 600, 709, 12_345, 101, 218, 214, 700, 719];
/// With which all calls from one on fail. Not CONTEXT_IS_DESTROYED: what was in that context would be gone with it, but the
/// fake keeps it.
const GOES_ON: [i32; 5] = [12_345, 2, 600, 218, 101];
/// In the environment: every call with each of the codes, and not with three of them in turn.
const ALL_CODES: &str = "LANKY_TEST_ALL_CODES";
/// ECC_UNCORRECTABLE, ILLEGAL_ADDRESS, LAUNCH_FAILED: the end of the context.
const FATAL: [i32; 3] = [214, 700, 719];

/// Calls that give something back. Where the driver refuses one, that one thing stays.
pub const RELEASES: [&str; 7] = [
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
    /// What it called before it dropped what it leaves.
    calls: Vec<String>,
    /// The function that was told to fail first, and whether the program was done by then.
    hit: Option<String>,
    in_the_end: bool,
}

fn number(what: i32) -> u64 {
    asked(what).first().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Runs the program with the driver told `words`, and drops what it leaves.
fn run(program: &Program, words: &str) -> Outcome {
    tell(&format!("{words} memory=16000000 mmas={}", lanky_host::model::variants::CEILING_MMAS));
    calls();
    let done = catch_unwind(AssertUnwindSafe(program.run)).unwrap_or_else(|_| panic!("{} panics", program.name));
    let (calls, in_the_end) = (calls(), asked(5).is_empty());
    let result = catch_unwind(AssertUnwindSafe(|| done.map(drop::<Left>)))
        .unwrap_or_else(|_| panic!("{} panics while it drops", program.name));
    let hit = asked(5).pop();
    Outcome { result: result.map(|()| Box::new(()) as Left), calls, in_the_end: in_the_end && hit.is_some(), hit }
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

/// The driver's function and the call of lanky that an error names.
fn named(error: &Error) -> Option<(&str, &str)> {
    match error {
        Error::Driver { operation, .. }
        | Error::ContextLost { operation, .. }
        | Error::Jit { operation, .. }
        | Error::DriverSetup { operation, .. }
        | Error::DeviceBusy { operation, .. }
        | Error::OutOfMemory { operation, .. } => operation.rsplit_once(" in "),
        _ => None,
    }
}

/// Whether the program need not learn that this function failed.
fn is_swallowed(program: &Program, function: &str, code: i32) -> bool {
    // A device need not know every attribute, and says so with this code.
    let is_unknown = function == "cuDeviceGetAttribute" && code == 1;
    let is_released = RELEASES.contains(&function) || program.lets_go && BEFORE_A_RELEASE.contains(&function);
    is_released || is_unknown || HARMLESS.contains(&function)
}

/// Whether an error says in one line that one of the functions failed with that code, and in which of the program's calls.
fn tells(program: &Program, functions: &[String], code: i32, error: &Error) -> bool {
    let text = error.to_string();
    let is_of = |function: &str| functions.iter().any(|hit| hit.trim_end_matches("_v2") == function);
    let is_named = named(error).is_some_and(|(function, call)| {
        is_of(function.split(' ').next().unwrap_or_default())
            && program.calls.contains(&call)
            && text.contains(&format!("{function} in {call}"))
    });
    // Which devices there are, and that somebody's context is gone: the error says all that there is to say.
    let is_said = match code {
        101 => ["cuInit", "cuDeviceGet", "cuDeviceGetCount"].into_iter().any(is_of),
        709 => is_of("cuCtxGetDevice"),
        _ => false,
    };
    let is_absent = is_said && matches!(error, Error::NoDevice { .. });
    !text.contains('\n') && (is_absent || is_named && code_of(error) == Some(code))
}

/// What is wrong with an outcome, if anything.
fn wrong(program: &Program, code: i32, outcome: &Outcome) -> Option<String> {
    let Some(hit) = &outcome.hit else { return Some("it is not reached".to_owned()) };
    let may_be_swallowed = outcome.in_the_end || is_swallowed(program, hit, code);
    match &outcome.result {
        Ok(_) if may_be_swallowed => None,
        Ok(_) => Some("it is swallowed".to_owned()),
        // The end of the context is then met by the next call.
        Err(Error::ContextLost { code: found, .. }) if may_be_swallowed && FATAL.contains(&code) && *found == code => {
            None
        }
        Err(error) => (!tells(program, std::slice::from_ref(hit), code, error)).then(|| error.to_string()),
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
    let again = run(program, "");
    if is_lost {
        let error = again.result.err().unwrap_or_else(|| panic!("{} ({hit}): the next time it works", case()));
        assert!(matches!(&error, Error::ContextLost { code: found, .. } if *found == code), "{}: {error:?}", case());
        // Where it was swallowed the next call has met it; from then on nothing is asked.
        calls();
        let last = run(program, "");
        assert!(matches!(last.result, Err(Error::ContextLost { .. })), "{}", case());
        assert_eq!([last.calls, calls()].concat(), [""; 0], "{} ({hit}): a lost context is left alone", case());
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

/// The call of that number fails in a new process, and all after it until the driver is told to be well again.
fn fails_from(program: &Program, at: u64, code: i32) {
    let case = || format!("{}: calls from {at} on fail with {code}", program.name);
    let outcome = run(program, &format!("from={at}:{code}"));
    assert!(outcome.hit.is_some(), "{}: none is reached", case());
    let failed = outcome.calls.get(at as usize - 1..).unwrap_or_default();
    match (failed.iter().position(|function| !is_swallowed(program, function, code)), &outcome.result) {
        (None, Ok(_)) => {}
        (Some(_), Ok(_)) => panic!("{}: {failed:?} are swallowed", case()),
        (met, Err(error)) => {
            let until = met.map_or(failed.len(), |met| met + 1);
            assert!(tells(program, &failed[..until], code, error), "{}: {failed:?}: {error}", case());
        }
    }
    run(program, "").result.map(drop).unwrap_or_else(|error| panic!("{}: the next time: {error}", case()));
    assert_eq!((misused(), freed_in_use()), (vec![], vec![]), "{}", case());
}

/// The codes that a call fails with: INVALID_VALUE, another that passes, and one that is fatal.
fn codes(at: u64) -> Vec<i32> {
    let turn = at as usize;
    match std::env::var_os(ALL_CODES) {
        Some(_) => CODES.to_vec(),
        None => vec![CODES[0], CODES[1 + turn % 6], CODES[7 + turn % 3]],
    }
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
        for at in (1..=calls).step_by(program.step) {
            let mut tried = |code: i32, work: &dyn Fn()| {
                if let Err(error) = in_a_fork(20, work) {
                    wrong.push(format!("{}: call {at} of {calls} with {code}: {error}", program.name));
                }
            };
            codes(at).into_iter().for_each(|code| tried(code, &|| fails_once(program, at, code, &clean)));
            let goes_on = GOES_ON[at as usize % GOES_ON.len()];
            tried(goes_on, &|| fails_from(program, at, goes_on));
        }
    }
    assert!(wrong.is_empty(), "{} cases, such as {:?}", wrong.len(), wrong[0]);
}

#[test]
fn every_call_of_programs_fails_once() {
    let (first, _) = ALL.split_at(8);
    with_driver("every::every_call_of_programs_fails_once", "", || {
        every_call_fails(first);
        Ok(())
    });
}

#[test]
fn every_call_of_other_programs_fails_once() {
    let (_, rest) = ALL.split_at(8);
    with_driver("every::every_call_of_other_programs_fails_once", "", || {
        every_call_fails(rest);
        Ok(())
    });
}
