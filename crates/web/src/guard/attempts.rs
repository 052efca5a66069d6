//! How often logins may be tried. Secrets can't be guessed; the limits are for the log, the processor and
//! the catalog.

use std::{
    hash::{BuildHasher as _, RandomState},
    net::IpAddr,
    num::NonZeroU32,
};

use forebay_access::TokenId;
use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    state::{InMemoryState, NotKeyed, keyed::HashMapStateStore},
};

/// Failed logins in a second, of one address.
const FAILED_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(10).unwrap();
/// In all.
const FAILED: NonZeroU32 = NonZeroU32::new(100).unwrap();
/// Logins of one token at once; one more each second.
const LOGINS_PER_TOKEN: NonZeroU32 = NonZeroU32::new(10).unwrap();
/// Addresses are counted in so many parts, by a hash that nobody knows. Two in one part share its limit.
const PARTS: usize = 1_024;
/// Tokens are forgotten whose limit is whole again, once there are so many.
const TOKENS_KEPT: usize = 1_024;

/// Counts for one limit.
type Limit<C> = RateLimiter<NotKeyed, InMemoryState, C, governor::middleware::NoOpMiddleware<Instant<C>>>;
/// The moments of a clock.
type Instant<C> = <C as Clock>::Instant;

/// Limits on logins. Failures use up those of failures alone, so that nobody is refused because of another's.
pub struct Attempts<C: Clock = DefaultClock> {
    /// Failures of addresses.
    addresses: Vec<Limit<C>>,
    /// Failures in all.
    all: Limit<C>,
    /// Which part an address belongs to.
    hash: RandomState,
    /// Logins of tokens. Only tokens that are valid get here.
    tokens:
        RateLimiter<TokenId, HashMapStateStore<TokenId>, C, governor::middleware::NoOpMiddleware<Instant<C>>>,
}

impl<C: Clock + Clone> Attempts<C> {
    /// By this clock.
    pub fn new(clock: C) -> Self {
        let failed = Quota::per_second(FAILED_PER_ADDRESS);
        let limit = |quota| RateLimiter::direct_with_clock(quota, clock.clone());
        let per_token = Quota::per_second(NonZeroU32::MIN).allow_burst(LOGINS_PER_TOKEN);
        Self {
            addresses: (0..PARTS).map(|_| limit(failed)).collect(),
            all: limit(Quota::per_second(FAILED)),
            hash: RandomState::new(),
            tokens: RateLimiter::new(per_token, HashMapStateStore::default(), clock.clone()),
        }
    }

    /// A login from an address has failed. Whether it is one too many.
    pub(crate) fn failed_too_often(&self, address: IpAddr) -> bool {
        let hash = self.hash.hash_one(neighbourhood(address));
        let part = usize::try_from(hash % PARTS as u64).unwrap_or(0);
        self.addresses[part].check().is_err() || self.all.check().is_err()
    }

    /// Somebody logs in with a token. Whether that is once too many.
    pub(crate) fn too_often(&self, token: &TokenId) -> bool {
        if self.tokens.len() > TOKENS_KEPT {
            self.tokens.retain_recent();
        }
        self.tokens.check_key(token).is_err()
    }
}

/// Whoever has one address of version 6 has as many as there are in a network of 64 bits.
fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_access::{RANDOM_BYTES, Token};
    use governor::clock::FakeRelativeClock;

    use super::*;

    #[test]
    fn failures_are_limited_by_address_and_in_all() {
        let clock = FakeRelativeClock::default();
        let attempts = Attempts::new(clock.clone());
        let failed = |text: &str| attempts.failed_too_often(text.parse().unwrap());
        assert!((0..10).all(|_| !failed("10.0.0.1")) && failed("10.0.0.1"));
        assert!(failed("::ffff:10.0.0.1"), "the same address");
        clock.advance(Duration::from_secs(1));
        let same = ["2001:db8::1", "2001:db8::2", "2001:db8:0:0:ffff::"];
        assert!((0..10).all(|turn| !failed(same[turn % 3])) && same.into_iter().all(failed));

        clock.advance(Duration::from_secs(1));
        let passed = (0..1_000).filter(|number| !failed(&format!("10.1.{}.{}", number / 250, number % 250)));
        assert_eq!(passed.count(), 100);
        clock.advance(Duration::from_millis(100));
        assert!(!failed("10.2.0.1"));
    }

    #[test]
    fn logins_are_limited_by_token_and_forgotten() {
        let clock = FakeRelativeClock::default();
        let attempts = Attempts::new(clock.clone());
        let token = |number: u64| {
            let mut bytes = [0; RANDOM_BYTES];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            Token::of_random(&bytes).id().clone()
        };
        let one = token(0);
        assert!((0..10).all(|_| !attempts.too_often(&one)) && attempts.too_often(&one));
        assert!(!attempts.too_often(&token(1)), "another one's are its own");
        clock.advance(Duration::from_secs(1));
        assert!(!attempts.too_often(&one) && attempts.too_often(&one));
        for number in 0..3_000 {
            attempts.too_often(&token(number));
            clock.advance(Duration::from_millis(10));
        }
        assert!(attempts.tokens.len() <= TOKENS_KEPT + 1, "{}", attempts.tokens.len());
    }
}
