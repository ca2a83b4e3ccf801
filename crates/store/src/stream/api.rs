//! A stream as commands see it: read and edited where it lies.
use crate::edit::{Collection, Edit, Start};
use crate::entry::{Meta, Shape};
use crate::keyspace::shard::Buffers;
use crate::kind::WrongType;
use crate::site::Site;
use crate::stream::tree::Stream;
use crate::value::Value;
use crate::{Key, View};
use std::ops::{Deref, DerefMut};

/// A stream, to edit. Dropping it puts it into the keyspace where it is new, unless [`StreamMut::give_up`]
/// was called.
pub struct StreamMut<'v>(Edit<'v, Stream>);

impl<'v> StreamMut<'v> {
    #[inline(always)]
    fn open(site: Site<'v>) -> Result<StreamMut<'v>, WrongType> {
        let start = Start::of(site.shape())?;
        let mut edit = Edit::new(site, (), start);
        if edit.is_new() {
            edit.grow();
        }
        Ok(StreamMut(edit))
    }

    /// Whether the key did not exist.
    pub fn is_new(&self) -> bool {
        self.0.is_new()
    }

    /// Ends the edit of a command that failed: a new stream is not created. A stream that was there before
    /// stays as it was edited.
    pub fn give_up(mut self) {
        self.0.give_up();
    }
}

impl Deref for StreamMut<'_> {
    type Target = Stream;

    #[inline]
    fn deref(&self) -> &Stream {
        self.0.tree().expect("a stream always lies outside")
    }
}

impl DerefMut for StreamMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Stream {
        self.0.tree_mut().expect("a stream always lies outside")
    }
}

/// A stream is never inside its entry: a new one grows before anything else, so there are no drafts. It may
/// be empty.
impl Collection for Stream {
    type Rules<'v> = ();
    type State = ();
    const OUTSIDE: Shape = Shape::Stream;

    #[inline]
    fn state(shape: Option<Shape>) -> Option<()> {
        shape.is_none().then_some(())
    }

    fn shape((): (), _: &Buffers) -> Shape {
        unreachable!("a stream has no draft")
    }

    fn is_tree_empty(&self) -> bool {
        false
    }

    fn grow((): (), (): (), _: &Buffers) -> Stream {
        Stream::default()
    }

    fn shrink(&self, (): &mut (), (): (), _: &mut Buffers) -> bool {
        false
    }

    fn settle(_: &mut Edit<'_, Stream>) -> bool {
        false
    }
}

impl View<'_> {
    /// The stream under `key`, to read; None where there is no such key.
    pub fn stream(&mut self, key: &Key<'_>) -> Result<Option<&Stream>, WrongType> {
        let Some(found) = self.look_used(key) else { return Ok(None) };
        match (Meta(found.meta).shape(), found.outside) {
            (Shape::Stream, Some(Value::Stream(stream))) => Ok(Some(stream)),
            _ => Err(WrongType),
        }
    }

    /// The stream under `key`, to edit; None where there is no such key.
    #[inline]
    pub fn stream_mut<'v>(&'v mut self, key: &Key<'v>) -> Result<Option<StreamMut<'v>>, WrongType> {
        self.site(key).map(StreamMut::open).transpose()
    }

    /// The stream under `key`, to edit; a new one where there is no such key. It is created even if nothing
    /// is added, unless [`StreamMut::give_up`] is called.
    #[inline]
    pub fn stream_or_new<'v>(&'v mut self, key: &Key<'v>) -> Result<StreamMut<'v>, WrongType> {
        StreamMut::open(self.site_or_new(key))
    }
}
