//! Values by name that are only ever added: found without a lock.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

/// Values in the order of their names.
///
/// They are read far more often than added to, so whoever adds one copies the list of pointers and swaps it.
pub(crate) struct Named<T> {
    sorted: ArcSwap<Vec<Arc<T>>>,
    /// Held while adding.
    adding: Mutex<()>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { sorted: ArcSwap::default(), adding: Mutex::default() }
    }
}

impl<T: AsRef<str>> Named<T> {
    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<Arc<T>> {
        let sorted = self.sorted.load();
        Some(Arc::clone(&sorted[find(&sorted, name).ok()?]))
    }

    /// The value of that name, made if it is new. Nothing if it is new and `make`, which is told how many there are, makes
    /// none.
    pub(crate) fn get_or_add(&self, name: &str, make: impl FnOnce(usize) -> Option<T>) -> Option<Arc<T>> {
        let _adding: MutexGuard<'_, ()> = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let sorted = self.sorted.load();
        let place = match find(&sorted, name) {
            Ok(place) => return Some(Arc::clone(&sorted[place])),
            Err(place) => place,
        };
        let value = Arc::new(make(sorted.len())?);
        let mut longer = Vec::with_capacity(sorted.len() + 1);
        longer.extend_from_slice(&sorted[..place]);
        longer.push(Arc::clone(&value));
        longer.extend_from_slice(&sorted[place..]);
        self.sorted.store(Arc::new(longer));
        Some(value)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.sorted.load().len()
    }

    /// All values, in the order of their names.
    pub(crate) fn all(&self) -> Arc<Vec<Arc<T>>> {
        self.sorted.load_full()
    }
}

#[inline]
fn find<T: AsRef<str>>(sorted: &[Arc<T>], name: &str) -> Result<usize, usize> {
    sorted.binary_search_by(|value| (**value).as_ref().cmp(name))
}

impl<T: fmt::Debug> fmt::Debug for Named<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.sorted.load().iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_and_found_by_its_name_in_order() {
        let named = Named::<String>::default();
        for name in ["b", "c", "a", "b"] {
            let added = named.get_or_add(name, |n| (n < 3).then(|| name.to_owned()));
            assert_eq!(*added.unwrap(), name);
        }
        assert!(named.get_or_add("d", |n| (n < 3).then(|| "d".to_owned())).is_none());
        assert!(named.get("d").is_none() && named.get("b").is_some());
        assert_eq!(named.all().iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(named.len(), 3);
    }

    #[test]
    fn threads_that_add_the_same_name_get_the_same_value() {
        let named = Named::<String>::default();
        let add = || named.get_or_add("a", |_| Some("a".to_owned())).unwrap();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(add)).collect();
            let found: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert!(found.iter().all(|value| Arc::ptr_eq(value, &found[0])));
        });
    }
}
