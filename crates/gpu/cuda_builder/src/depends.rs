//! What a crate of kernels is made of.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folder of the workspace that a package belongs to: the nearest one upwards whose manifest has `[workspace]`,
/// else the package's own.
pub(crate) fn workspace_root(package: &Path) -> PathBuf {
    let has_workspace = |folder: &&Path| {
        std::fs::read_to_string(folder.join("Cargo.toml"))
            .is_ok_and(|manifest| manifest.lines().any(|line| line.trim_start().starts_with("[workspace]")))
    };
    package.ancestors().find(has_workspace).unwrap_or(package).to_path_buf()
}

/// From a dependency file of cargo's (`output: source source ..`): the manifests and source folders of all packages in
/// it that lie outside `not_in`.
///
/// Folders, not files: cargo looks at all that is in them, so a new file counts too.
pub(crate) fn watched(dep_info: &str, not_in: &[&Path]) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    for source in sources(dep_info) {
        if not_in.iter().any(|folder| source.starts_with(folder)) {
            continue;
        }
        let Some(package) = source.ancestors().skip(1).find(|folder| folder.join("Cargo.toml").is_file()) else {
            found.insert(source);
            continue;
        };
        let of_package = [package.join("Cargo.toml"), package.join("build.rs"), package.join("src")];
        // A path that is not there would make cargo run the build script each time.
        found.extend(of_package.into_iter().filter(|path| path.exists()));
        if !source.starts_with(package.join("src")) {
            found.insert(source);
        }
    }
    found.into_iter().collect()
}

/// The prerequisites of each rule; a space within a name is written `\ `.
fn sources(dep_info: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in dep_info.lines().filter(|line| !line.starts_with('#')) {
        let Some((_, names)) = line.split_once(": ") else { continue };
        let mut name = String::new();
        let mut characters = names.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\\' if characters.peek() == Some(&' ') => name.extend(characters.next()),
                ' ' => found.push(std::mem::take(&mut name)),
                _ => name.push(character),
            }
        }
        found.push(name);
    }
    found.into_iter().filter(|name| !name.is_empty()).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependency_files_are_read() {
        let text = "# comment\n/t/liba.a: /k/src/lib.rs /a\\ b/src/x.rs\n\n/k/src/lib.rs:\n";
        assert_eq!(sources(text), [PathBuf::from("/k/src/lib.rs"), PathBuf::from("/a b/src/x.rs")]);
    }

    #[test]
    fn packages_are_watched_as_folders() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = format!("x: {}/src/lib.rs {}/src/arch.rs /registry/z/src/lib.rs\n", here.display(), here.display());
        assert_eq!(watched(&text, &[Path::new("/registry")]), [here.join("Cargo.toml"), here.join("src")]);
    }

    #[test]
    fn the_workspace_is_found() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(workspace_root(here).join("Cargo.lock").is_file());
        assert_ne!(workspace_root(here), here);
    }
}
