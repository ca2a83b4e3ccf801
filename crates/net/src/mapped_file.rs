//! A file mapped into memory, for what is to outlive the process: what is put there is in the system's copy
//! of the file at once, without a call, and whoever opens the file after the process was killed finds it. It
//! does not outlive the machine, as nothing does that was not synced.
//!
//! The file may cease to be writable under a mapping: somebody cuts it, or the disk fails, or is full where
//! it writes each block to another place. The system then sends SIGBUS to whoever writes. A handler puts
//! plain memory in the place of the mapping, the write is done again, and goes there; [`MappedFile::is_lost`]
//! says so from then on. Faults at other places go to whoever handled them before.
//!
//! ```text
//! free ---- create ---> mapped ---- a fault, the handler ---> lost
//!   ^                      |                                   |
//!   \------ the last part is dropped --------------------------/
//! ```
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// So many files can be mapped at a time; the handler looks at all of them.
const FILES_MAX: usize = 64;

/// Where a file is mapped, as the handler has to know it.
struct Place {
    is_taken: AtomicBool,
    start: AtomicUsize,
    len: AtomicUsize,
    is_lost: AtomicBool,
}

static PLACES: [Place; FILES_MAX] = [const {
    Place {
        is_taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        is_lost: AtomicBool::new(false),
    }
}; FILES_MAX];

/// How faults were handled before.
static BEFORE: OnceLock<Before> = OnceLock::new();

struct Before(libc::sigaction);

// SAFETY: plain data, which is written once and then only read.
unsafe impl Send for Before {}
// SAFETY: as above.
unsafe impl Sync for Before {}

/// See the file's opener. The mapping lasts as long as this or any of its parts.
pub struct MappedFile(Arc<Mapping>);

struct Mapping {
    start: NonNull<u8>,
    len: usize,
    place: &'static Place,
}

// SAFETY: the memory is reached through parts only, each of which has a range of its own.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// A range of the file that nobody else writes to.
pub struct MappedPart {
    mapping: Arc<Mapping>,
    start: usize,
    len: usize,
}

impl MappedFile {
    /// Makes this empty file, which is open for reading and writing, as long as the parts are together, has
    /// the file system set the room aside, and maps it. All of it is zero. Lengths are multiples of eight.
    pub fn create(file: &File, part_lens: &[usize]) -> io::Result<(MappedFile, Vec<MappedPart>)> {
        assert!(part_lens.iter().all(|len| len % 8 == 0), "words of parts are aligned");
        handle_faults()?;
        let len = part_lens.iter().sum();
        allocate(file, len)?;
        let is_free = |place: &&Place| !place.is_taken.swap(true, Acquire);
        let place = PLACES.iter().find(is_free).ok_or_else(|| io::Error::other("too many mapped files"))?;
        let mapped = match map(file, len) {
            Ok(start) => start,
            Err(error) => {
                place.is_taken.store(false, Release);
                return Err(error);
            }
        };
        place.is_lost.store(false, Relaxed);
        place.len.store(len, Relaxed);
        place.start.store(mapped.as_ptr() as usize, Release);
        let mapping = Arc::new(Mapping { start: mapped, len, place });
        let mut start = 0;
        let part = |len: &usize| {
            let part = MappedPart { mapping: Arc::clone(&mapping), start, len: *len };
            start += len;
            part
        };
        let parts = part_lens.iter().map(part).collect();
        Ok((MappedFile(mapping), parts))
    }

    /// Whether what was put there may not be in the file, from some moment on.
    pub fn is_lost(&self) -> bool {
        self.0.place.is_lost.load(Relaxed)
    }
}

impl MappedPart {
    /// Puts bytes at this place of the part, which has room for them.
    #[inline]
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        assert!(at <= self.len && bytes.len() <= self.len - at, "a part is not left");
        // SAFETY: the range lies in this part (above), whose mapping lives as long as the part does. Nobody
        // else in this process reads or writes it, and `bytes` are in memory that somebody else owns.
        unsafe {
            let target = self.mapping.start.as_ptr().add(self.start + at);
            ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
        }
    }

    /// Where in memory this place of the part is.
    #[inline]
    pub fn address(&self, at: usize) -> *const u8 {
        self.mapping.start.as_ptr().wrapping_add(self.start + at)
    }

    /// Puts a word at this place, a multiple of eight, as the machine has it. Whoever finds it in the file
    /// finds all that was put before as well.
    #[inline]
    pub fn put_word(&mut self, at: usize, word: u64) {
        assert!(at.is_multiple_of(8) && at < self.len && self.len - at >= 8, "a part is not left");
        // SAFETY: as in `put`; the mapping begins at a page, and parts and `at` are multiples of eight, so it
        // is aligned.
        let target = unsafe { AtomicU64::from_ptr(self.mapping.start.as_ptr().add(self.start + at).cast()) };
        target.store(word, Release);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.place.start.store(0, Release);
        self.place.len.store(0, Release);
        // SAFETY: the range is that of the mapping, or of what the handler has put in its place, and no part
        // is left that could reach it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        self.place.is_taken.store(false, Release);
    }
}

/// Makes the file so long. Where the file system cannot set room aside the file has holes.
fn allocate(file: &File, len: usize) -> io::Result<()> {
    let len_off = libc::off_t::try_from(len).map_err(io::Error::other)?;
    loop {
        // SAFETY: no pointers.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, len_off) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => return file.set_len(len as u64),
            _ => return Err(error),
        }
    }
}

fn map(file: &File, len: usize) -> io::Result<NonNull<u8>> {
    let (rights, fd) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
    // SAFETY: a new mapping at a place that the system chooses; the result is checked before it is used.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), len, rights, libc::MAP_SHARED, fd, 0) };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(mapped.cast()).ok_or_else(|| io::Error::other("mapped at nothing"))
}

/// Installs the handler, once for the process. When this returns it is installed, whoever did that.
fn handle_faults() -> io::Result<()> {
    static IS_INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut is_installed = IS_INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_installed {
        return Ok(());
    }
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks how the signal is handled; all zeros is a valid value of the structure, which lives
    // through the call.
    let before = unsafe {
        if libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        before.assume_init()
    };
    // An attempt that failed has noted the same.
    let _ = BEFORE.set(Before(before));
    // SAFETY: the structure is valid (all zeros, then these fields), and the handler calls nothing that a
    // handler of a signal may not.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        if libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    *is_installed = true;
    Ok(())
}

/// Somebody has written to memory that the system cannot keep. When this returns the write is done again.
extern "C" fn on_fault(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the system hands a valid structure to a handler with SA_SIGINFO.
    let at = unsafe { (*info).si_addr() } as usize;
    for place in &PLACES {
        let (start, len) = (place.start.load(Acquire), place.len.load(Relaxed));
        if start != 0 && at.wrapping_sub(start) < len {
            let (rights, flags) = (
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            );
            // SAFETY: the range is that of a mapping which whoever faulted holds; it is replaced by memory
            // that can be written, and what was in it was there for others to read.
            let mapped = unsafe { libc::mmap(start as *mut libc::c_void, len, rights, flags, -1, 0) };
            if mapped != libc::MAP_FAILED {
                place.is_lost.store(true, Release);
                return;
            }
        }
    }
    if let Some(before) = BEFORE.get() {
        // SAFETY: what was installed before is installed again, and meets the same fault.
        unsafe { libc::sigaction(libc::SIGBUS, &raw const before.0, ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> (File, std::path::PathBuf) {
        let path = std::env::temp_dir().join(format!("sardine-mapped-{}-{name}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        (file, path)
    }

    #[test]
    fn what_is_put_is_in_the_file_while_it_is_mapped() {
        let (opened, path) = file("put");
        let (mapped, mut parts) = MappedFile::create(&opened, &[4096, 8192]).unwrap();
        parts[0].put(4000, b"first");
        parts[1].put(0, b"second");
        parts[1].put_word(8184, u64::from_ne_bytes(*b"the last"));
        let found = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((&found[4000..4005], &found[4096..4102]), (&b"first"[..], &b"second"[..]));
        assert_eq!((&found[12280..], found.len()), (&b"the last"[..], 12288));
        assert!(!mapped.is_lost());
    }

    #[test]
    #[should_panic(expected = "a part is not left")]
    fn a_part_is_not_left() {
        let (opened, path) = file("left");
        std::fs::remove_file(path).unwrap();
        let (_mapped, mut parts) = MappedFile::create(&opened, &[4096, 4096]).unwrap();
        parts[0].put(4090, b"too long");
    }

    #[test]
    fn a_file_that_is_cut_loses_what_is_put_and_nobody_dies_of_it() {
        for round in 0..3 {
            let (opened, path) = file("cut");
            std::fs::remove_file(path).unwrap();
            let (mapped, mut parts) = MappedFile::create(&opened, &[8192]).unwrap();
            parts[0].put(5000, b"there");
            opened.set_len(4096).unwrap();
            parts[0].put(0, b"there still");
            assert!(!mapped.is_lost());
            parts[0].put(5000, b"gone");
            assert!(mapped.is_lost(), "round {round}");
            parts[0].put_word(8184, 1);
        }
    }

    #[test]
    fn places_are_used_again() {
        for _ in 0..2 * FILES_MAX {
            let (opened, path) = file("again");
            std::fs::remove_file(path).unwrap();
            assert!(MappedFile::create(&opened, &[4096]).is_ok());
        }
    }
}
