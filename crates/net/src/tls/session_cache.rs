//! The sessions that clients may resume, which spares both sides the expensive half of a handshake. A client
//! is given only the name of its session; the secrets stay here. All sessions are forgotten when the settings
//! of TLS are loaded anew, so that nobody resumes a session whose certificate is trusted no longer.
//!
//! Bounded in number (`tls-session-cache-size`: the oldest goes) and in time (`tls-session-cache-timeout`).
//! With TLS 1.3 a client gets two names at each handshake, and each is good for one resumption.
use crate::now;
use base::Millis;
use rustls::server::StoresServerSessions;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many are kept where the setting says 0, which OpenSSL takes for no limit.
const DEFAULT_SIZE: usize = 20 << 10;

#[derive(Debug)]
pub(super) struct SessionCache {
    size: usize,
    timeout_ms: i64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_name: BTreeMap<Vec<u8>, Entry>,
    /// Names in the order in which they came, also those of sessions that have been taken out since.
    order: VecDeque<(Vec<u8>, Millis)>,
}

#[derive(Debug)]
struct Entry {
    since: Millis,
    secrets: Vec<u8>,
}

impl SessionCache {
    /// Without sessions.
    pub(super) fn new(size: u32, timeout_s: u32) -> SessionCache {
        let size = if size == 0 { DEFAULT_SIZE } else { size as usize };
        SessionCache { size, timeout_ms: i64::from(timeout_s) * 1000, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a session is too old. One that seems to be from the future, because the clock was put back, is
    /// taken for too old as well.
    fn is_over(&self, since: Millis, now: Millis) -> bool {
        !(0..self.timeout_ms).contains(&now.since(since))
    }

    fn put_at(&self, name: Vec<u8>, secrets: Vec<u8>, now: Millis) {
        let mut kept = self.kept();
        while let Some((_, since)) = kept.order.front()
            && (kept.order.len() >= self.size || self.is_over(*since, now))
        {
            kept.drop_oldest();
        }
        kept.order.push_back((name.clone(), now));
        kept.by_name.insert(name, Entry { since: now, secrets });
    }

    fn find_at(&self, name: &[u8], now: Millis) -> Option<Vec<u8>> {
        let kept = self.kept();
        let entry = kept.by_name.get(name)?;
        (!self.is_over(entry.since, now)).then(|| entry.secrets.clone())
    }

    fn take_at(&self, name: &[u8], now: Millis) -> Option<Vec<u8>> {
        let entry = self.kept().by_name.remove(name)?;
        (!self.is_over(entry.since, now)).then_some(entry.secrets)
    }
}

impl Kept {
    fn drop_oldest(&mut self) {
        let Some((name, since)) = self.order.pop_front() else { return };
        // A later session may have the same name.
        if self.by_name.get(&name).is_some_and(|entry| entry.since == since) {
            self.by_name.remove(&name);
        }
    }
}

impl StoresServerSessions for SessionCache {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.put_at(key, value, now());
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.find_at(key, now())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.take_at(key, now())
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_when_there_is_no_room() {
        let cache = SessionCache::new(3, 300);
        for n in 0..5u8 {
            cache.put_at(vec![n], vec![n, n], Millis(i64::from(n)));
        }
        assert_eq!(cache.find_at(&[1], Millis(9)), None);
        assert_eq!(cache.find_at(&[2], Millis(9)), Some(vec![2, 2]));
        assert_eq!(cache.take_at(&[3], Millis(9)), Some(vec![3, 3]));
        assert_eq!(cache.take_at(&[3], Millis(9)), None);
        assert!(cache.kept().order.len() <= 3);
    }

    #[test]
    fn a_session_is_forgotten_when_its_time_is_over_or_cannot_be_known() {
        let cache = SessionCache::new(0, 300);
        cache.put_at(vec![1], vec![1], Millis(1000));
        assert!(cache.find_at(&[1], Millis(300_999)).is_some());
        assert_eq!(cache.find_at(&[1], Millis(301_000)), None);
        assert_eq!(cache.find_at(&[1], Millis(999)), None);
        cache.put_at(vec![2], vec![2], Millis(301_000));
        assert_eq!(cache.kept().by_name.len(), 1);
    }
}
