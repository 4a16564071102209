//! What a device says of itself.

use super::{Device, Kind};
use crate::error::Error;
use crate::{cpu, env};
use std::fmt;

/// Without the general part that a sentence about the choice of a device does not need.
pub(super) fn reason_of(error: &Error) -> String {
    match error {
        Error::NoDriver { reason, .. } | Error::NoDevice { reason } => reason.clone(),
        other => other.to_string(),
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Cpu => write!(f, "cpu  {}", cpu::description()),
            Kind::Refused(_) => f.write_str("no device"),
            Kind::Cuda(gpu) => {
                write!(f, "cuda:{}  {}, {} SMs, driver ", gpu.ordinal, gpu.name, gpu.machine.sms)?;
                match env::driver_release() {
                    Some(release) => write!(f, "{release} (CUDA {})", gpu.driver),
                    None => write!(f, "for CUDA {}", gpu.driver),
                }
            }
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({self}: {})", self.reason)
    }
}
