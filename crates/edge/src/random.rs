//! Random numbers of the operating system.

use rand::{TryRng as _, rngs::SysRng};

/// The system has no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("cannot read random numbers from the system: {0}")]
pub struct NoRandomNumbers(String);

/// Random bytes, of which secrets may be made.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], NoRandomNumbers> {
    let mut bytes = [0; N];
    SysRng.try_fill_bytes(&mut bytes).map_err(|error| NoRandomNumbers(error.to_string()))?;
    Ok(bytes)
}

/// A random number.
pub fn random() -> Result<u64, NoRandomNumbers> {
    SysRng.try_next_u64().map_err(|error| NoRandomNumbers(error.to_string()))
}
