//! Memory of the host, asked for before somebody takes it who ends the process where there is none.

use crate::error::Fault;
use crate::made_up::wide;

/// An empty vector with room for `len` elements.
///
/// # Errors
/// [`Fault::Memory`], in the words of the library's matrices.
pub fn room<T>(len: usize) -> Result<Vec<T>, Fault> {
    let mut data = Vec::new();
    let wanted = wide(size_of::<T>()).saturating_mul(wide(len));
    let full = |_| Fault::Memory(format!("out of memory: {wanted} bytes wanted"));
    data.try_reserve_exact(len).map_err(full)?;
    Ok(data)
}

/// Asks for so many bytes at once and gives them back.
///
/// # Errors
/// [`Fault::Memory`]: there are not so many.
pub fn ask(bytes: u64) -> Result<(), Fault> {
    let asked = room::<u8>(usize::try_from(bytes).unwrap_or(usize::MAX))?;
    // What nobody looks at the compiler does not ask for.
    std::hint::black_box(asked.as_ptr());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_a_fault_and_no_abort() {
        assert!(ask(1 << 20).is_ok());
        let fault = ask(u64::MAX).expect_err("no machine has so many");
        assert_eq!(fault.to_string(), format!("out of memory: {} bytes wanted", u64::MAX));
        assert!(matches!(fault, Fault::Memory(_)));
    }
}
