//! The device that `--device` names.

use lanky::Device;

use crate::args::Place;
use crate::error::Fault;
use crate::tuned;

/// Opens it; plans on it follow the measurements that LANKY_TUNED asks for.
///
/// # Errors
/// [`Fault::Device`]: there is no such device, or it cannot be used.
pub fn open(place: Place) -> Result<Device, Fault> {
    let device = match place {
        Place::Auto => Device::try_auto()?,
        Place::Cuda(ordinal) => Device::cuda(ordinal)?,
        Place::Cpu => Device::cpu(),
    };
    tuned::follow(&device);
    Ok(device)
}

/// What `--device` would have to be to get it again: `cuda:0` or `cpu`.
pub fn name(device: &Device) -> String {
    device.ordinal().map_or_else(|| "cpu".into(), |ordinal| format!("cuda:{ordinal}"))
}

/// The line that says what is used and why.
pub fn line(device: &Device) -> String {
    format!("{device}: {}", device.reason())
}

/// A forced variant is a kernel, and those need a GPU.
///
/// # Errors
/// [`Fault::Input`] where the CPU was asked for, [`Fault::Device`] where there was no GPU.
pub fn check_variant(device: &Device, place: Place, variant: Option<&str>) -> Result<(), Fault> {
    match variant {
        Some(name) if !device.is_cuda() && place == Place::Cpu => {
            Err(Fault::Input(format!("variant {name} is a GPU kernel: it does not go with --device cpu")))
        }
        Some(name) if !device.is_cuda() => {
            Err(Fault::Device(format!("variant {name} is a GPU kernel, but there is no GPU: {}", device.reason())))
        }
        _ => Ok(()),
    }
}
