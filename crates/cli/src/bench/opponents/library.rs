//! Shared libraries that may or may not be there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use libloading::Library;

/// The first that opens: what the variable names (a file, or a folder that has one), what the loader finds by itself, and
/// files of these names in the folders.
///
/// It stays loaded until the process ends: what has threads of its own cannot be taken away from under them.
///
/// `before` is loaded from beside a file first, by its full path: it is needed where the loader does not look there.
///
/// # Errors
/// Why none did, in a line.
pub fn open(
    variable: &str,
    names: &[&str],
    folders: &[PathBuf],
    before: Option<fn(&str) -> String>,
) -> Result<&'static Library, String> {
    let mut reasons = Vec::new();
    for path in candidates(std::env::var_os(variable), names, folders) {
        if let (true, Some(before), Some(name)) = (path.is_absolute(), before, path.file_name()) {
            let beside = path.with_file_name(before(&name.to_string_lossy()));
            // SAFETY: a library that was named or is found where such libraries are; its initialisation asks nothing of the
            // process. It stays loaded for the one after it.
            if let Ok(library) = unsafe { Library::new(beside) } {
                std::mem::forget(library);
            }
        }
        // SAFETY: a library that was named or is found where such libraries are; its initialisation asks nothing of the
        // process. It stays loaded: it is leaked.
        match unsafe { Library::new(&path) } {
            Ok(library) => return Ok(Box::leak(Box::new(library))),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    Err(reasons.first().map_or_else(|| format!("{variable} names nothing that is there"), Clone::clone))
}

fn candidates(named: Option<OsString>, names: &[&str], folders: &[PathBuf]) -> Vec<PathBuf> {
    if let Some(path) = named.filter(|path| !path.is_empty()).map(PathBuf::from) {
        // Whoever names one wants that one or none.
        let inside = || names.iter().map(|name| path.join(name)).filter(|path| path.exists()).collect();
        return if path.is_dir() { inside() } else { vec![path] };
    }
    let mut all: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    let files = folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    all.extend(files.filter(|path| path.exists()));
    all
}

/// Folders of NVIDIA's Python packages, wherever Python is usually installed, and of toolkits.
pub fn nvidia_folders() -> Vec<PathBuf> {
    let variable = |name: &str, rest: &str| std::env::var_os(name).map(|root| Path::new(&root).join(rest));
    let mut roots = vec![PathBuf::from("/usr/lib"), "/usr/local/lib".into()];
    roots.extend(variable("VIRTUAL_ENV", "lib"));
    roots.extend(variable("CONDA_PREFIX", "lib"));
    roots.extend(variable("HOME", ".local/lib"));
    roots.extend(inside(Path::new("/opt"), "").into_iter().map(|folder| folder.join("lib")));
    let versions = variable("HOME", ".pyenv/versions").map(|folder| inside(&folder, "")).unwrap_or_default();
    roots.extend(versions.into_iter().map(|folder| folder.join("lib")));
    let mut found = Vec::new();
    for python in roots.iter().flat_map(|root| inside(root, "python3")) {
        for packages in ["site-packages", "dist-packages"] {
            let nvidia = python.join(packages).join("nvidia");
            found.extend(inside(&nvidia, "").into_iter().map(|folder| folder.join("lib")));
        }
    }
    found.extend(inside(Path::new("/usr/local"), "cuda").into_iter().map(|folder| folder.join("lib64")));
    found.retain(|folder| folder.is_dir());
    found
}

/// What is in a folder under names that begin so, sorted.
fn inside(folder: &Path, start: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(start))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_a_library_gets_that_one_or_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("libx.so.2");
        std::fs::write(&file, "no library").expect("written");
        let names = ["libx.so.3", "libx.so.2"];
        assert_eq!(candidates(Some(folder.path().into()), &names, &[]), [file.as_path()]);
        assert_eq!(candidates(Some(file.clone().into()), &names, &[]), [file.as_path()]);
        let searched = candidates(None, &names, &[folder.path().into(), "/nowhere".into()]);
        assert_eq!(searched, ["libx.so.3".into(), PathBuf::from("libx.so.2"), file]);
    }

    #[test]
    fn a_missing_library_has_a_reason() {
        let error = open("LANKY_NO_SUCH_VARIABLE", &["libnothing-of-this-name.so.7"], &[], None);
        assert!(error.is_err_and(|why| why.contains("libnothing-of-this-name.so.7")));
    }
}
