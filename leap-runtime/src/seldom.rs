//! A value that is hardly ever there.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

/// A boxed value that is hardly ever there.
///
/// Where it is not, dropping it costs a comparison in place: of an `Option<Box<T>>` the compiler makes a function that
/// every call would have to call.
#[derive(Debug)]
pub(crate) struct Seldom<T>(ManuallyDrop<Option<Box<T>>>);

impl<T> Default for Seldom<T> {
    #[inline]
    fn default() -> Self {
        None.into()
    }
}

impl<T> From<Option<T>> for Seldom<T> {
    #[inline]
    fn from(value: Option<T>) -> Self {
        Self(ManuallyDrop::new(value.map(Box::new)))
    }
}

impl<T> Deref for Seldom<T> {
    type Target = Option<Box<T>>;

    #[inline]
    fn deref(&self) -> &Option<Box<T>> {
        &self.0
    }
}

impl<T> DerefMut for Seldom<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Option<Box<T>> {
        &mut self.0
    }
}

impl<T> Drop for Seldom<T> {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_some() {
            drop_it(&mut self.0);
        }
    }
}

#[cold]
#[inline(never)]
fn drop_it<T>(value: &mut Option<Box<T>>) {
    *value = None;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_is_there_is_dropped_once_and_what_was_taken_is_not() {
        let value = Arc::new(());
        drop(Seldom::from(Some(Arc::clone(&value))));
        assert_eq!(Arc::strong_count(&value), 1);
        let mut seldom = Seldom::from(Some(Arc::clone(&value)));
        let taken = seldom.take();
        drop(seldom);
        assert_eq!(Arc::strong_count(&value), 2);
        drop(taken);
        drop(Seldom::<Arc<()>>::default());
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
