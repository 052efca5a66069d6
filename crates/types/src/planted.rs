//! The switch for bugs that tests plant, to see whether the simulation's checker catches them. Each crate
//! with such bugs has an enum of them. Without the feature `planted-bugs` the switch is always off.

#[cfg(feature = "planted-bugs")]
mod switch {
    use std::{any::Any, cell::RefCell};

    thread_local! {
        static PLANTED: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
    }

    /// Plants a bug into all that runs in this thread, or pulls out whatever is there.
    pub fn plant<B: Any>(bug: Option<B>) {
        PLANTED.set(bug.map(|bug| Box::new(bug) as Box<dyn Any>));
    }

    /// Whether this bug is planted.
    pub fn on<B: Any + PartialEq>(bug: B) -> bool {
        planted(|planted: &B| *planted == bug)
    }

    /// Whether any bug of a crate is planted.
    pub fn any<B: Any>() -> bool {
        planted(|_: &B| true)
    }

    fn planted<B: Any>(is: impl FnOnce(&B) -> bool) -> bool {
        PLANTED.with_borrow(|planted| planted.as_ref().and_then(|it| it.downcast_ref()).is_some_and(is))
    }
}

#[cfg(feature = "planted-bugs")]
pub use switch::{any, on, plant};

/// Nothing is planted.
#[cfg(not(feature = "planted-bugs"))]
pub const fn on<B: Copy>(_bug: B) -> bool {
    false
}

/// Nothing is planted.
#[cfg(not(feature = "planted-bugs"))]
pub const fn any<B>() -> bool {
    false
}
