//! A stream as commands see it: to read, and to edit where it lies.
use crate::entry::{Meta, Shape};
use crate::kind::WrongType;
use crate::site::Site;
use crate::stream::tree::Stream;
use crate::value::Value;
use crate::{Key, View};
use std::ops::{Deref, DerefMut};

/// A stream, to edit. Dropping it puts it into the keyspace where it is new, unless [`StreamMut::give_up`] was called.
pub struct StreamMut<'v> {
    site: Site<'v>,
    /// None where the stream is stored already, and edited where it lies.
    new: Option<Box<Stream>>,
}

impl<'v> StreamMut<'v> {
    #[inline]
    fn open(site: Site<'v>) -> Result<StreamMut<'v>, WrongType> {
        match site.shape() {
            Some(Shape::Stream) => Ok(StreamMut { site, new: None }),
            None => Ok(StreamMut { site, new: Some(Box::default()) }),
            Some(_) => Err(WrongType),
        }
    }

    /// Whether the key did not exist.
    pub fn is_new(&self) -> bool {
        self.new.is_some()
    }

    /// A new stream does not come to be.
    pub fn give_up(mut self) {
        self.new = None;
    }
}

impl Deref for StreamMut<'_> {
    type Target = Stream;

    #[inline]
    fn deref(&self) -> &Stream {
        match (&self.new, self.site.outside()) {
            (Some(stream), _) | (None, Some(Value::Stream(stream))) => stream,
            _ => unreachable!("the shape said that a stream lies outside"),
        }
    }
}

impl DerefMut for StreamMut<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Stream {
        if let Some(stream) = &mut self.new {
            return stream;
        }
        match self.site.outside_mut() {
            Some(Value::Stream(stream)) => stream,
            _ => unreachable!("the shape said that a stream lies outside"),
        }
    }
}

impl Drop for StreamMut<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(stream) = self.new.take() {
            self.site.put_outside(Shape::Stream, Value::Stream(stream));
        }
    }
}

impl View<'_> {
    pub fn stream(&mut self, key: &Key<'_>) -> Result<Option<&Stream>, WrongType> {
        let Some(found) = self.look_used(key) else { return Ok(None) };
        match (Meta(found.meta).shape(), found.outside) {
            (Shape::Stream, Some(Value::Stream(stream))) => Ok(Some(stream)),
            _ => Err(WrongType),
        }
    }

    #[inline]
    pub fn stream_mut<'v>(&'v mut self, key: &Key<'v>) -> Result<Option<StreamMut<'v>>, WrongType> {
        self.site(key).map(StreamMut::open).transpose()
    }

    /// Created empty where missing.
    #[inline]
    pub fn stream_or_new<'v>(&'v mut self, key: &Key<'v>) -> Result<StreamMut<'v>, WrongType> {
        StreamMut::open(self.site_or_new(key))
    }
}
