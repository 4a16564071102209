//! A driver that lacks a function, as older ones do: each in turn.

use super::programs::ALL;
use super::*;
use lanky_host::Error;
use std::os::unix::fs::PermissionsExt;

/// The functions of the fake driver.
fn functions() -> Vec<String> {
    let source = include_str!("libcuda.rs");
    let names = source.lines().filter_map(|line| line.strip_prefix("    cu")?.split_once('(')).map(|(name, _)| name);
    let names = names.filter(|name| name.chars().all(|letter| letter.is_alphanumeric() || letter == '_'));
    names.map(|name| format!("cu{name}")).chain(["cuModuleLoadDataEx".to_owned()]).collect()
}

/// The library with another letter in a function's name, which no look-up finds then.
fn without(library: &[u8], function: &str) -> Vec<u8> {
    let name = [b"\0", function.as_bytes(), b"\0"].concat();
    let places: Vec<usize> = (0..library.len() - name.len()).filter(|&at| library[at..].starts_with(&name)).collect();
    assert!(!places.is_empty(), "the library has no {function}");
    let mut library = library.to_vec();
    places.iter().for_each(|at| library[at + 1] = b'x');
    library
}

#[test]
fn a_function_that_the_driver_lacks_is_named_when_it_is_needed() {
    const NAME: &str = "lacking::a_function_that_the_driver_lacks_is_named_when_it_is_needed";
    // In a folder of its own: the library there is another one for every fork, none of which has loaded it before.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("driver-lacking");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    let whole = fake().join("libcuda.so.1");
    in_a_child(NAME, "", &folder, || {
        let functions = functions();
        assert!(functions.len() > 40, "{functions:?}");
        unpacked();
        let whole = std::fs::read(&whole).expect("the fake was compiled");
        for function in functions {
            let (made, place) = (folder.join(format!("made-{}", std::process::id())), folder.join("libcuda.so.1"));
            std::fs::write(&made, without(&whole, &function)).expect("the target folder can be written");
            std::fs::set_permissions(&made, PermissionsExt::from_mode(0o755)).expect("it is ours");
            std::fs::rename(&made, &place).expect("the target folder can be written");
            in_a_fork(20, || lacks(&function)).unwrap_or_else(|error| panic!("without {function}: {error}"));
        }
        Ok(())
    });
}

/// What there is for whoever does not need the function works; where it is needed the error names it.
fn lacks(function: &str) {
    let mut named = 0;
    for program in &ALL[..ALL.len() - 1] {
        let result = (program.run)().map(drop);
        let Err(error) = result else { continue };
        let (text, short) = (error.to_string(), function.trim_end_matches("_v2"));
        assert!(matches!(&error, Error::Driver { code: 302, .. }), "{}: {error:?}", program.name);
        assert!(text.contains(&format!("the CUDA driver is too old: it has no {short}")), "{}: {text}", program.name);
        named += 1;
        if function == "cuStreamEndCapture" {
            break; // what was begun never ends
        }
    }
    let is_optional = ["cuFuncGetAttribute", "cuDevicePrimaryCtxRelease_v2", "cuCtxSetCurrent", "cuEventQuery"];
    let is_release = function.contains("Free") || function.contains("Destroy") || function.contains("Unload");
    let is_quiet = is_release || is_optional.contains(&function) || function.starts_with("cuCtx");
    assert!(named > 0 || is_quiet, "nobody says that {function} is not there");
    assert_eq!(misused(), [""; 0]);
}
