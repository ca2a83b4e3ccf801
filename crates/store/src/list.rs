//! Lists: inside the keyspace entry while they are short, a packed tree behind one pointer from then on.
use crate::{End, Key, View, WrongType};
use base::Item;
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// A list, to read.
pub struct List<'v>(PhantomData<&'v ()>);

#[allow(unused_variables)]
#[allow(clippy::len_without_is_empty)]
impl List<'_> {
    pub fn len(&self) -> u64 {
        todo!()
    }
    pub fn get<R>(&self, index: u64, look: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        todo!()
    }
    /// Visits from element `index` towards the tail (or the head) until told to stop.
    pub fn visit(&self, index: u64, towards: End, visit: &mut dyn FnMut(u64, Item<'_>) -> ControlFlow<()>) {
        todo!()
    }
}

/// A list, to edit. Dropping it puts it back; an empty list takes its key with it.
pub struct ListMut<'v>(PhantomData<&'v ()>);

#[allow(unused_variables)]
#[allow(clippy::len_without_is_empty)]
impl ListMut<'_> {
    pub fn len(&self) -> u64 {
        todo!()
    }
    pub fn get<R>(&self, index: u64, look: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        todo!()
    }
    pub fn visit(&self, index: u64, towards: End, visit: &mut dyn FnMut(u64, Item<'_>) -> ControlFlow<()>) {
        todo!()
    }
    pub fn push(&mut self, end: End, value: &[u8]) {
        todo!()
    }
    pub fn pop<R>(&mut self, end: End, take: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        todo!()
    }
    pub fn set(&mut self, index: u64, value: &[u8]) {
        todo!()
    }
    pub fn insert(&mut self, index: u64, value: &[u8]) {
        todo!()
    }
    pub fn remove(&mut self, index: u64, count: u64) {
        todo!()
    }
}

#[allow(unused_variables)]
impl View<'_> {
    pub fn list(&mut self, key: &Key<'_>) -> Result<Option<List<'_>>, WrongType> {
        todo!()
    }
    pub fn list_mut(&mut self, key: &Key<'_>) -> Result<Option<ListMut<'_>>, WrongType> {
        todo!()
    }
    /// Created empty where missing.
    pub fn list_or_new(&mut self, key: &Key<'_>) -> Result<ListMut<'_>, WrongType> {
        todo!()
    }
}
