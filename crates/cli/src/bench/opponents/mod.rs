//! Whom we are compared with: libraries that are found at run time, none of which the program needs.

use lanky::{Error, Stream};

use super::contest::Run;
use super::fault;
use super::job::Job;

mod blas;
mod cublas;
mod factors;
mod library;
mod openblas;
mod peers;

/// A product for an opponent: C <- op(A) op(B) + beta C.
#[derive(Clone, Copy)]
pub struct Product<'s> {
    pub job: Job,
    pub alpha: f64,
    pub beta: f64,
    pub stream: &'s Stream,
}

/// Somebody who computes products where our data is.
pub trait Opponent {
    /// `cublas`, `openblas`, `gemm`: as results have it.
    fn name(&self) -> &str;

    /// What runs this product; `None` if this one does not do such products.
    fn prepare<'s>(&'s self, product: Product<'s>) -> Option<Box<dyn Run + 's>>;
}

/// All that are found for the stream's device, and what is said of those that are not.
pub struct Found {
    pub opponents: Vec<Box<dyn Opponent>>,
    pub notes: Vec<String>,
}

/// Looks for all; only those whose names begin with one of `against`, if that is not empty. The GPU's context is current.
pub fn find(stream: &Stream, against: &[String]) -> Found {
    let mut found = Found { opponents: Vec::new(), notes: Vec::new() };
    if against.iter().any(|name| name == "none") {
        return found;
    }
    // A library's calls have names of their own, which begin with its.
    let may_have = |library: &str| {
        against.is_empty() || against.iter().any(|start| library.starts_with(start) || start.starts_with(library))
    };
    match stream.as_raw() {
        Some(raw) if may_have("cublas") => found.add(cublas::open(raw), "cuBLAS"),
        None if may_have("openblas") => found.add(openblas::open(), "OpenBLAS"),
        _ => {}
    }
    match peers::open(stream.device().is_cuda()) {
        Ok(Some(peers)) => found.opponents.extend(peers),
        Ok(None) => {}
        Err(why) => found.notes.push(why),
    }
    found.keep(against);
    found
}

impl Found {
    /// Those that are asked for, all if none is; a name that nobody has is noted.
    fn keep(&mut self, against: &[String]) {
        for start in against {
            if !self.opponents.iter().any(|opponent| opponent.name().starts_with(start.as_str())) {
                self.notes.push(format!("--against {start}: nobody of that name is here"));
            }
        }
        let wanted = |name: &str| against.is_empty() || against.iter().any(|start| name.starts_with(start.as_str()));
        self.opponents.retain(|opponent| wanted(opponent.name()));
    }

    fn add(&mut self, opened: Result<Vec<Box<dyn Opponent>>, String>, name: &str) {
        match opened {
            Ok(opponents) => self.opponents.extend(opponents),
            Err(why) => self.notes.push(format!("no {name}: {why}")),
        }
    }
}

/// alpha, doubled where a test plants that fault.
pub fn alpha() -> f64 {
    if fault::planted(fault::WRONG_OPPONENTS) { 2.0 } else { 1.0 }
}

/// The error of an opponent's call.
fn failed(call: &str, code: impl std::fmt::Display) -> Error {
    Error::Unsupported { what: format!("{call}, which gave {code}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static str);

    impl Opponent for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn prepare<'s>(&'s self, _product: Product<'s>) -> Option<Box<dyn Run + 's>> {
            None
        }
    }

    #[test]
    fn who_is_asked_for_stays_and_who_is_not_here_is_said() {
        let kept = |against: &[&str]| {
            let opponents = ["cublas", "cublas-gemv", "gemm"].map(|name| Box::new(Named(name)) as Box<dyn Opponent>);
            let mut found = Found { opponents: opponents.into(), notes: Vec::new() };
            found.keep(&against.iter().map(ToString::to_string).collect::<Vec<_>>());
            let names: Vec<&str> = found.opponents.iter().map(|opponent| opponent.name()).collect();
            (names.join(" "), found.notes.join("; "))
        };
        assert_eq!(kept(&[]), ("cublas cublas-gemv gemm".into(), String::new()));
        assert_eq!(kept(&["cublas"]), ("cublas cublas-gemv".into(), String::new()));
        assert_eq!(kept(&["cublas-g", "ge"]), ("cublas-gemv gemm".into(), String::new()));
        let note = "--against cublass: nobody of that name is here";
        assert_eq!(kept(&["cublass", "gemm"]), ("gemm".into(), note.into()));
    }
}
