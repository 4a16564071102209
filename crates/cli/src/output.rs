//! Output files that are whole or not there: written beside the target, then renamed over it.
//!
//! An existing output that is no regular file (a pipe, /dev/null, standard output) is written to directly. One that is
//! keeps its permissions, and its owner where the system lets it.

use std::ffi::{CStr, CString, c_char};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::error::Fault;

/// How long a FIFO's reader may take to come.
const READER_PATIENCE: Duration = Duration::from_secs(5);

/// The unfinished file, for whoever ends the process early.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Its path once more, for a handler of signals, which may neither lock nor allocate; null is none.
static BESIDE: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());

fn unfinished() -> MutexGuard<'static, Option<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the unfinished file and lets no other be made or renamed until the process has ended.
pub fn abandon() {
    let mut unfinished = unfinished();
    if let Some(path) = unfinished.take() {
        let _ = fs::remove_file(path);
    }
    std::mem::forget(unfinished);
}

/// Removes the unfinished file, whatever others do with it: for a handler of signals, after which the process ends.
pub fn remove_at_once() {
    let path = BESIDE.load(Ordering::SeqCst);
    if !path.is_null() {
        // SAFETY: `create_beside` put the text there and frees none.
        let _ = rustix::fs::unlink(unsafe { CStr::from_ptr(path) });
    }
}

/// Whether `path` means standard output, by any of its usual names.
pub fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// Writes a whole file.
///
/// # Errors
/// As [`Output::create`], and where the system cannot write it.
pub fn write(path: &Path, text: &str) -> Result<(), Fault> {
    let mut output = Output::create(path)?;
    output.write_all(text.as_bytes()).map_err(|error| output.fault(&error))?;
    output.commit()
}

/// Refuses outputs that would replace what is read, or each other, whatever names they go by. What is no regular file replaces nothing.
///
/// # Errors
/// [`Fault::Input`], with the names of both.
pub fn refuse_to_replace(read: &[&Path], written: &[&Path]) -> Result<(), Fault> {
    for (at, output) in written.iter().enumerate() {
        for (others, what) in [(read, "read"), (&written[..at], "written too")] {
            if let Some(other) = others.iter().find(|other| is_same(output, other)) {
                return Err(Fault::at(output, &format!("it would replace {}, which is {what}", other.display())));
            }
        }
    }
    Ok(())
}

/// Whether both are one file, or would be.
fn is_same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| Some(directory_of(path).canonicalize().ok()?.join(path.file_name()?));
    match (fs::metadata(one), fs::metadata(other)) {
        _ if is_stdout(one) || is_stdout(other) => false,
        (Ok(one), Ok(other)) => one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()),
        (Err(_), Err(_)) => place(one).is_some_and(|one| Some(one) == place(other)),
        _ => false,
    }
}

/// A file that is being written.
pub struct Output {
    /// As the user named it.
    path: PathBuf,
    file: File,
    /// What the finished file is to be called; `None` where it is written to directly.
    target: Option<PathBuf>,
}

impl Output {
    /// Makes sure that `path` can be written, and leaves what is there as it is.
    ///
    /// # Errors
    /// [`Fault::Input`], one line that starts with the path.
    pub fn create(path: &Path) -> Result<Self, Fault> {
        let fault = |error: io::Error| Fault::file(path, &error);
        if is_stdout(path) {
            let file = File::from(io::stdout().as_fd().try_clone_to_owned().map_err(fault)?);
            return Ok(Self { path: path.into(), file, target: None });
        }
        let mut old = None;
        let target = match fs::metadata(path) {
            Ok(facts) if facts.is_dir() => return Err(Fault::at(path, "it is a directory")),
            Ok(facts) if !facts.is_file() => {
                let file = open_direct(path, facts.file_type().is_fifo()).map_err(fault)?;
                return Ok(Self { path: path.into(), file, target: None });
            }
            Ok(facts) => {
                old = Some(facts);
                // A rename needs no right to write the old file; its owner may still have taken that right away.
                OpenOptions::new().write(true).open(path).map_err(fault)?;
                path.canonicalize().map_err(fault)?
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(fault(error)),
            Err(_) if fs::symlink_metadata(path).is_ok() => return Err(Fault::at(path, "it is a link to nothing")),
            Err(_) if path.as_os_str().is_empty() => return Err(Fault::Input("the output has an empty name".into())),
            Err(_) if path.as_os_str().as_bytes().ends_with(b"/") => {
                return Err(Fault::at(path, "there is no such directory"));
            }
            Err(_) => path.to_path_buf(),
        };
        let file = create_beside(&target, old.as_ref()).map_err(fault)?;
        let output = Self { path: path.into(), file, target: Some(target) };
        old.map_or(Ok(()), |old| keep_rights(&output.file, &old)).map_err(fault)?;
        Ok(output)
    }

    /// Whether it is written to directly, and so not there as a whole: standard output, a pipe, a device.
    pub fn is_direct(&self) -> bool {
        self.target.is_none()
    }

    /// The fault of a failed write: none where standard output's reader has seen enough.
    pub fn fault(&self, error: &io::Error) -> Fault {
        if is_stdout(&self.path) && error.kind() == ErrorKind::BrokenPipe {
            return Fault::Closed;
        }
        Fault::file(&self.path, error)
    }

    /// Makes the file safe on disk and gives it its name.
    ///
    /// # Errors
    /// [`Fault::Input`]; the old file is then as it was.
    pub fn commit(mut self) -> Result<(), Fault> {
        let Some(target) = self.target.take() else { return Ok(()) };
        let result = self.file.sync_all().and_then(|()| {
            let mut unfinished = unfinished();
            match unfinished.as_ref() {
                Some(beside) => fs::rename(beside, &target)?,
                None => return Err(io::Error::other("the unfinished file is gone")),
            }
            BESIDE.store(std::ptr::null_mut(), Ordering::SeqCst);
            *unfinished = None;
            Ok(())
        });
        if let Err(error) = result {
            self.target = Some(target);
            return Err(Fault::file(&self.path, &error));
        }
        // The name is there; that it also survives a power failure is more than a file system may offer.
        if let Ok(directory) = File::open(directory_of(&target)) {
            let _ = directory.sync_all();
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.target.is_none() {
            return;
        }
        if let Some(path) = unfinished().take() {
            let _ = fs::remove_file(path);
            BESIDE.store(std::ptr::null_mut(), Ordering::SeqCst);
        }
    }
}

fn directory_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Gives `file` the owner and the permissions of the one that it replaces. Only root may give a file away; that the
/// owner stays who wrote it is no fault.
fn keep_rights(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        let (uid, gid) = (Some(old.uid()), Some(old.gid()));
        let _ = std::os::unix::fs::fchown(file, uid, gid).or_else(|_| std::os::unix::fs::fchown(file, None, gid));
    }
    // Asked for only where it changes something: not every file system has permissions.
    if new.permissions() == old.permissions() { Ok(()) } else { file.set_permissions(old.permissions()) }
}

/// A new file in the target's directory, which [`abandon`] knows of from its first moment, open to nobody whom the one
/// that it is to replace is closed to.
fn create_beside(target: &Path, old: Option<&Metadata>) -> io::Result<File> {
    let mode = old.map_or(0o666, |old| old.permissions().mode() & 0o666);
    let mut unfinished = unfinished();
    let process = std::process::id();
    for attempt in 0..1000 {
        // Short, so that it fits wherever the target's own name does.
        let beside = directory_of(target).join(format!(".lanky-{process}-{attempt}"));
        let name = CString::new(beside.as_os_str().as_bytes())?;
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside) {
            Ok(file) => {
                // Never freed, for a handler may read it at any later moment; a run has few outputs.
                BESIDE.store(name.into_raw(), Ordering::SeqCst);
                *unfinished = Some(beside);
                return Ok(file);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "too many unfinished files beside it"))
}

/// Opens what is no regular file. The reader of a FIFO is waited for, but not for ever.
fn open_direct(path: &Path, fifo: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    if !fifo {
        return options.open(path);
    }
    options.custom_flags(i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default());
    let began = Instant::now();
    loop {
        match options.open(path) {
            Ok(file) => {
                rustix::fs::fcntl_setfl(&file, rustix::fs::fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
                return Ok(file);
            }
            Err(error) if error.raw_os_error() != Some(rustix::io::Errno::NXIO.raw_os_error()) => return Err(error),
            Err(_) if began.elapsed() > READER_PATIENCE => return Err(io::Error::other("nobody reads from this FIFO")),
            Err(_) => sleep(Duration::from_millis(20)),
        }
    }
}
