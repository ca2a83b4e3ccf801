//! The program's own code, mapped before it is needed. A page of it that runs for the first time costs a
//! fault, tens of microseconds where the machine is busy, and the first client of a command would pay for it;
//! it would also show as memory that this command's data seems to take. The pages are the file's, in the
//! system's cache and shared: mapping them costs nothing that is not there.
use std::ops::Range;

/// Maps all code of the running program. Kernels before 5.14 do not know the request and refuse it: then each
/// page is mapped when it is first needed, as without this.
pub fn map_code() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    for code in pieces(&maps, &program.to_string_lossy()) {
        // SAFETY: asks for pages of a mapping to be present, which reads and changes nothing that is in them.
        unsafe { libc::madvise(code.start as *mut libc::c_void, code.len(), libc::MADV_POPULATE_READ) };
    }
}

/// Where code and constants of `program` are mapped: what may not be written.
///
/// ```text
/// 55d0a1c00000-55d0a1e3f000 r-xp 00200000 08:01 1234   /usr/bin/sardine
/// ```
fn pieces<'m>(maps: &'m str, program: &'m str) -> impl Iterator<Item = Range<usize>> + 'm {
    maps.lines().filter_map(move |line| {
        let mut words = line.split_whitespace();
        let (range, rights) = (words.next()?, words.next()?);
        let is_ours = !program.is_empty() && line.ends_with(program) && !rights.contains('w');
        let (start, end) = range.split_once('-').filter(|_| is_ours)?;
        Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_constants_are_found_and_data_is_not() {
        let maps = "1000-3000 r--p 00000000 08:01 7 /bin/s\n3000-4000 r-xp 00002000 08:01 7 /bin/s\n\
                    5000-6000 rw-p 00003000 08:01 7 /bin/s\n7000-8000 r-xp 00000000 08:01 9 /lib/c\n";
        assert_eq!(pieces(maps, "/bin/s").collect::<Vec<_>>(), [0x1000..0x3000, 0x3000..0x4000]);
        assert_eq!(pieces(maps, "").count() + pieces("garbage\n", "garbage").count(), 0);
    }

    #[test]
    fn mapping_the_running_program_leaves_it_running() {
        map_code();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let program = std::env::current_exe().unwrap();
        assert!(
            pieces(&maps, &program.to_string_lossy()).any(|code| code.contains(&(map_code as fn() as usize)))
        );
    }
}
