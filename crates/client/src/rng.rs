//! Random numbers, shared by a client's clones.

use std::{sync::Mutex, time::Duration};

use rand::{Rng as _, RngExt as _, SeedableRng as _, rngs::StdRng};

/// The random numbers of pauses and request ids, shared by a client's clones.
#[derive(Debug)]
pub(crate) struct SharedRng(Mutex<StdRng>);

impl SharedRng {
    /// Seeded, or from the system's random numbers.
    pub(crate) fn new(seed: Option<u64>) -> Self {
        Self(Mutex::new(seed.map_or_else(rand::make_rng, StdRng::seed_from_u64)))
    }

    /// A random id of 32 hexadecimal digits.
    pub(crate) fn request_id(&self) -> String {
        let (high, low) = self.with(|rng| (rng.next_u64(), rng.next_u64()));
        format!("{high:016x}{low:016x}")
    }

    /// A random duration up to `max`.
    pub(crate) fn up_to(&self, max: Duration) -> Duration {
        max.mul_f64(self.with(|rng| rng.random::<f64>()))
    }

    /// A random number for the first turn.
    pub(crate) fn turn(&self) -> usize {
        // It is used modulo a small number, so a narrow one will do.
        self.with(|rng| rng.next_u32()) as usize
    }

    fn with<T>(&self, f: impl FnOnce(&mut StdRng) -> T) -> T {
        // A panic while the lock is held leaves a valid generator.
        f(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_differ() {
        let rng = SharedRng::new(None);
        assert_ne!(rng.request_id(), rng.request_id());
        assert_eq!(SharedRng::new(Some(3)).request_id(), SharedRng::new(Some(3)).request_id());
    }
}
