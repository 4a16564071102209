//! The architectures that can be compiled for.

/// A GPU architecture; PTX for one runs on it and on all later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NvvmArch {
    /// Ampere (A100).
    Compute80,
    /// Ampere (GeForce 30).
    Compute86,
    /// Ada.
    Compute89,
    /// Hopper.
    Compute90,
    /// Blackwell (B200).
    Compute100,
    /// Blackwell (GeForce 50).
    Compute120,
}

impl NvvmArch {
    /// `sm_90`: the name that rustc and the PTX use.
    pub const fn target_cpu(self) -> &'static str {
        match self {
            Self::Compute80 => "sm_80",
            Self::Compute86 => "sm_86",
            Self::Compute89 => "sm_89",
            Self::Compute90 => "sm_90",
            Self::Compute100 => "sm_100",
            Self::Compute120 => "sm_120",
        }
    }

    /// `ptx78`: the PTX version that is asked for. The version sets the oldest driver, so it is the lowest that has the
    /// architecture and, for sm_80 and sm_86, the cache hints of loads (7.4). What needs more is told by
    /// [`crate::CudaBuilder::ptx_version`].
    pub const fn ptx_feature(self) -> &'static str {
        match self {
            Self::Compute80 | Self::Compute86 => "ptx74",
            Self::Compute89 | Self::Compute90 => "ptx78",
            Self::Compute100 => "ptx86",
            Self::Compute120 => "ptx87",
        }
    }
}
