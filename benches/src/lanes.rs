//! What each of two lanes calls.

/// A thing for each lane, on cache lines of its own: side by side, two lanes would write to the same line.
#[derive(Debug)]
pub struct Lanes<T>([Apart<T>; 2]);

#[derive(Debug)]
#[repr(align(128))]
struct Apart<T>(T);

impl<T> Lanes<T> {
    pub fn new(make: impl Fn(usize) -> T) -> Self {
        Self([0, 1].map(|lane| Apart(make(lane))))
    }

    #[must_use]
    pub fn of(&self, lane: usize) -> &T {
        &self.0[lane].0
    }
}
