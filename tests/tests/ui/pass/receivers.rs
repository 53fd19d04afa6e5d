//! E26: every receiver, lifetimes, generics, bounds, trait methods and default bodies.
#![deny(warnings)]

use std::fmt::{Debug, Display};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use leap_runtime::{Blocked, guarded};

#[derive(Default)]
struct Shop<T> {
    orders: Vec<T>,
    name: String,
}

impl<T: Clone> Shop<T> {
    #[guarded]
    fn by_value(self) -> Result<Vec<T>, Blocked> {
        Ok(self.orders)
    }

    #[guarded]
    fn by_mut_value(mut self, order: T) -> Result<Self, Blocked> {
        self.orders.push(order);
        Ok(self)
    }

    #[guarded]
    fn by_ref(&self) -> Result<&str, Blocked> {
        Ok(&self.name)
    }

    #[guarded]
    fn by_mut(&mut self) -> Result<&mut Vec<T>, Blocked> {
        Ok(&mut self.orders)
    }

    #[guarded]
    fn with_lifetime<'a>(&'a mut self, index: usize) -> Result<&'a mut T, Blocked> {
        Ok(&mut self.orders[index])
    }

    #[guarded]
    fn boxed(self: Box<Self>) -> Result<String, Blocked> {
        Ok(self.name)
    }

    #[guarded]
    fn shared(self: Arc<Self>) -> Result<usize, Blocked> {
        Ok(self.orders.len())
    }

    #[guarded]
    fn shared_here(self: &Rc<Self>) -> Result<usize, Blocked> {
        Ok(self.orders.len())
    }

    #[guarded]
    fn pinned(self: Pin<&mut Self>) -> Result<usize, Blocked> {
        Ok(self.orders.len())
    }

    #[guarded]
    fn makes(name: &str) -> Result<Self, Blocked> {
        Ok(Self { orders: Vec::new(), name: name.into() })
    }

    #[guarded]
    async fn by_value_async(self) -> Result<Vec<T>, Blocked> {
        Ok(self.orders)
    }

    #[guarded]
    async fn by_ref_async(&self) -> Result<&str, Blocked> {
        Ok(&self.name)
    }

    #[guarded]
    async fn by_mut_async(&mut self, order: T) -> Result<&mut T, Blocked> {
        self.orders.push(order);
        Ok(self.orders.last_mut().unwrap())
    }

    #[guarded]
    async fn pinned_async(self: Pin<&mut Self>) -> Result<usize, Blocked> {
        Ok(self.orders.len())
    }

    #[guarded(fallback = Self::no_orders)]
    fn falls_back(&self, _id: u64) -> Vec<T> {
        self.orders.clone()
    }

    fn no_orders(&self, _id: u64, _: Blocked) -> Vec<T> {
        Vec::new()
    }

    #[guarded(fallback = Shop::empty)]
    fn falls_back_by_value(self) -> Vec<T> {
        self.orders
    }

    fn empty(self, _: Blocked) -> Vec<T> {
        Vec::new()
    }
}

trait Stock {
    fn count(&self, sku: &str) -> Result<u32, Blocked>;

    #[guarded]
    fn has(&self, sku: &str) -> Result<bool, Blocked> {
        Ok(self.count(sku)? > 0)
    }

    #[guarded]
    fn owned(self) -> Result<Self, Blocked>
    where
        Self: Sized,
    {
        Ok(self)
    }

    #[allow(async_fn_in_trait)]
    async fn later(&self) -> Result<u32, Blocked>;
}

impl<T> Stock for Shop<T> {
    #[guarded]
    fn count(&self, sku: &str) -> Result<u32, Blocked> {
        Ok(sku.len() as u32)
    }

    #[guarded]
    async fn later(&self) -> Result<u32, Blocked> {
        self.count("later")
    }
}

#[guarded]
fn const_generic<const N: usize, T: Copy + Default>(values: [T; N]) -> Result<[T; N], Blocked>
where
    T: PartialEq,
{
    Ok(if values[0] == T::default() { values } else { [T::default(); N] })
}

#[guarded]
fn unsized_and_dynamic<T: ?Sized + Debug>(a: &T, b: &dyn Display, c: impl Display) -> Result<String, Blocked> {
    Ok(format!("{a:?}{b}{c}"))
}

#[guarded]
async fn unsized_and_dynamic_async<T: ?Sized + Debug>(a: &T, b: &dyn Display, c: impl Display) -> Result<String, Blocked> {
    Ok(format!("{a:?}{b}{c}"))
}

#[guarded]
fn elided<'a>(a: &'a str, b: &str) -> Result<std::borrow::Cow<'a, str>, Blocked> {
    Ok(if b.is_empty() { a.into() } else { a.to_uppercase().into() })
}

#[guarded]
fn higher_ranked(f: impl for<'a> Fn(&'a str) -> &'a str, g: &mut dyn FnMut(u8)) -> Result<usize, Blocked> {
    g(1);
    Ok(f("abc").len())
}

fn main() {
    let mut shop = Shop::<u8>::makes("corner").unwrap().by_mut_value(1).unwrap();
    shop.by_mut().unwrap().push(2);
    *shop.with_lifetime(0).unwrap() = 3;
    assert_eq!(shop.by_ref().unwrap(), "corner");
    assert_eq!(Pin::new(&mut shop).pinned().unwrap(), 2);
    assert!(shop.has("a").unwrap());
    assert_eq!(shop.falls_back(1), [3, 2]);
    drop(shop.by_ref_async());
    drop(shop.later());
    drop(shop.by_mut_async(1));
    drop(Pin::new(&mut shop).pinned_async());
    assert_eq!(shop.by_value().unwrap(), [3, 2]);
    assert_eq!(Shop::<u8>::default().owned().unwrap().falls_back_by_value(), []);
    drop(Shop::<u8>::default().by_value_async());
    assert_eq!(Box::new(Shop::<u8>::default()).boxed().unwrap(), "");
    assert_eq!(Arc::new(Shop::<u8>::default()).shared().unwrap(), 0);
    assert_eq!(Rc::new(Shop::<u8>::default()).shared_here().unwrap(), 0);
    assert_eq!(const_generic([0_u8; 3]).unwrap(), [0; 3]);
    assert_eq!(unsized_and_dynamic("a", &1, 2).unwrap(), "\"a\"12");
    drop(unsized_and_dynamic_async("a", &1, 2));
    assert_eq!(elided("a", "b").unwrap(), "A");
    assert_eq!(higher_ranked(|s| s, &mut |_| ()).unwrap(), 3);
}
