//! A .npy file opened for reading: its header is checked at once, its body is read straight into a caller's buffer.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use lanky::Scalar;

use super::{Header, Order};
use crate::error::Fault;

/// NumPy itself refuses longer headers; the bound comes before anything is allocated.
const HEADER_LIMIT: u64 = 64 << 10;

/// An open .npy file, positioned at its first element.
pub struct Input {
    path: PathBuf,
    file: File,
    header: Header,
}

impl Input {
    /// Opens `path` and checks all that can be checked without reading the body.
    ///
    /// # Errors
    /// [`Fault::Input`], one line that starts with the path.
    pub fn open(path: &Path) -> Result<Self, Fault> {
        // Without O_NONBLOCK the open of a FIFO that nobody writes to would never return.
        let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = opened.map_err(|error| Fault::file(path, &error))?;
        let facts = file.metadata().map_err(|error| Fault::file(path, &error))?;
        if facts.is_dir() {
            return Err(Fault::at(path, "it is a directory, not a .npy file"));
        }
        if !facts.is_file() {
            return Err(Fault::at(path, "it is no regular file; save the array into one first"));
        }
        let (header, offset) = read_header(&file, facts.len()).map_err(|reason| Fault::at(path, &reason))?;
        let too_large = || Fault::at(path, &format!("its .npy header claims {}, beyond any memory", sizes(&header)));
        let bytes = header.elements().ok_or_else(too_large)? * header.dtype.bytes();
        let present = facts.len() - offset;
        if present < bytes {
            let of = if header.shape.len() >= 2 { "" } else { "of " };
            let claim = format!("it is truncated: its header claims {} {of}{}", sizes(&header), header.dtype);
            return Err(Fault::at(path, &format!("{claim}, {bytes} bytes, but {present} follow")));
        }
        Ok(Self { path: path.to_path_buf(), file, header })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next elements of the body, in the file's order.
    ///
    /// # Errors
    /// The file ended since it was opened, or could not be read.
    pub fn fill<T: Scalar>(&mut self, elements: &mut [T]) -> io::Result<()> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(elements);
        self.file.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "it became shorter while it was read"),
            _ => error,
        })?;
        if cfg!(target_endian = "big") {
            bytes.chunks_exact_mut(size_of::<T::Real>()).for_each(<[u8]>::reverse);
        }
        Ok(())
    }
}

/// The header and the offset of the first element in bytes.
pub(super) fn read_header(mut file: impl Read, file_bytes: u64) -> Result<(Header, u64), String> {
    let mut take = |bytes: &mut [u8]| file.read_exact(bytes).map_err(|error| header_reason(&error));
    let mut start = [0_u8; 8];
    take(&mut start)?;
    if !start.starts_with(b"\x93NUMPY") {
        return Err("it is not a .npy file".into());
    }
    let (length, before) = match (start[6], start[7]) {
        (1, 0) => {
            let mut length = [0_u8; 2];
            take(&mut length)?;
            (u64::from(u16::from_le_bytes(length)), 10)
        }
        (2 | 3, 0) => {
            let mut length = [0_u8; 4];
            take(&mut length)?;
            (u64::from(u32::from_le_bytes(length)), 12)
        }
        (major, minor) => return Err(format!("it is .npy version {major}.{minor}, but 1.0 to 3.0 are read")),
    };
    let offset = before + length;
    if offset > file_bytes {
        return Err(format!("it is truncated: its header should end at byte {offset}, the file ends at {file_bytes}"));
    }
    if length > HEADER_LIMIT {
        return Err(format!("its .npy header is {length} bytes long, more than {HEADER_LIMIT}"));
    }
    let mut text = vec![0; usize::try_from(length).map_err(|error| error.to_string())?];
    take(&mut text)?;
    Ok((Header::parse(&text)?, offset))
}

fn header_reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof => "it is not a .npy file: it ends before its header does".into(),
        _ => error.to_string(),
    }
}

/// `3 x 4`, `5 elements` or `one element`.
fn sizes(header: &Header) -> String {
    match header.shape.as_slice() {
        [] => "one element".into(),
        [length] => format!("{length} elements"),
        lengths => lengths.iter().map(u64::to_string).collect::<Vec<_>>().join(" x "),
    }
}

impl Order {
    /// The layout that a device gives a matrix read in this order.
    pub fn layout(self) -> lanky::Layout {
        match self {
            Self::C => lanky::Layout::RowMajor,
            Self::Fortran => lanky::Layout::ColumnMajor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that another process cuts while it is read: an error, where a mapped file would end the process.
    #[test]
    fn a_file_that_shrinks_is_said_to_have() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("a.npy");
        let header = Header { dtype: model::Dtype::F64, order: Order::C, shape: vec![1000, 2] };
        let body = vec![0; 16_000];
        std::fs::write(&path, [super::super::header_bytes(&header), body].concat()).unwrap();
        let mut input = Input::open(&path).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(input.header(), &header);
        let mut elements = [1.0_f64; 1000];
        input.fill(&mut elements).unwrap();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(9000).unwrap();
        let error = input.fill(&mut elements).unwrap_err();
        assert_eq!(error.to_string(), "it became shorter while it was read");
    }
}
