//! Moves values to where they leave fewer holes, where a server asks for that.
//!
//! Nothing points into a value, so that it may be moved. The filter of a value is a box of its own,
//! and is moved too. Its table stays: it is one allocation, and mostly a large one, which leaves no
//! holes.

use std::ffi::{c_int, c_void};
use std::ptr;

use super::api::{RawDefrag, RawString, api};
use crate::filter::Filter;

/// Moves a value. The server then remembers it at its new place. Returns 0: all is done.
pub(super) unsafe extern "C" fn move_value(
    defrag: *mut RawDefrag,
    _key: *mut RawString,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: the server passes the place where it keeps the value.
    let value = unsafe { &mut *value };
    *value = moved(defrag, *value);
    // SAFETY: it is a filter, and the server does nothing else with it now.
    match unsafe { &mut *value.cast() } {
        Filter::Native(filter) => move_box(defrag, filter),
        Filter::Expiring(filter) => move_box(defrag, filter),
        Filter::Compat(_) | Filter::Loading(_) | Filter::Sending(_) => {}
    }
    0
}

fn move_box<T>(defrag: *mut RawDefrag, place: &mut Box<T>) {
    let old = &raw mut **place;
    let new: *mut T = moved(defrag, old.cast()).cast();
    // SAFETY: it has the bytes of the old one and is allocated in the same way.
    let new = unsafe { Box::from_raw(new) };
    // SAFETY: the place is valid. Its old content is not dropped: it is the new one, or it is gone.
    unsafe { ptr::write(place, new) };
}

/// Where the server has moved an allocation to, which may be where it was.
fn moved(defrag: *mut RawDefrag, old: *mut c_void) -> *mut c_void {
    // SAFETY: the server allocated it. It returns null, or moves it and frees the old one.
    let new = unsafe { (api().DefragAlloc)(defrag, old) };
    if new.is_null() { old } else { new }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::reply::Reply;
    use crate::command::run;
    use crate::keys::{Memory, MemoryKeys};
    use crate::server::fake::{self, Moves};
    use crate::server::values;

    fn run_line(memory: &mut Memory, line: &str) -> Reply {
        let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let mut keys = MemoryKeys { memory, arguments: &arguments, events: Vec::new() };
        run(&mut keys, &arguments).expect(line)
    }

    /// Filters of all kinds: in RedisBloom's layout, and half loaded too.
    fn filters() -> Memory {
        let mut memory = Memory { limit: u64::MAX, now: 5, ..Memory::default() };
        run_line(&mut memory, "RESERVE fixed 100 EXPANSION 0");
        run_line(&mut memory, "RESERVE window 100 WINDOW 9");
        for key in ["fixed", "window", "grown"] {
            run_line(&mut memory, &format!("INSERT {key} ITEMS a b"));
        }
        (0..3000).for_each(|item| drop(run_line(&mut memory, &format!("ADD grown {item}"))));
        let numbers: [u64; 4] = [0, 8, 0, 1];
        let mut header: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
        header.extend([2, 0, 20, 0, 1, 0]);
        for (key, chunk) in [("compat", vec![0; 16]), ("half", vec![0; 7])] {
            for (iterator, chunk) in
                [("1", &header), (["17", "8"][usize::from(key == "half")], &chunk)]
            {
                let line = [b"LOADCHUNK", key.as_bytes(), iterator.as_bytes(), chunk];
                let mut keys =
                    MemoryKeys { memory: &mut memory, arguments: &line, events: Vec::new() };
                run(&mut keys, &line).expect("a chunk");
            }
        }
        run_line(&mut memory, "INSERT compat ITEMS a b");
        memory
    }

    /// The server calls the callback, and each allocation that it is asked to move moves, or none.
    #[test]
    fn the_callback_moves_values_and_changes_no_byte() {
        fake::load();
        let mut memory = filters();
        for (key, allocations) in
            [("fixed", 2), ("grown", 2), ("window", 2), ("compat", 1), ("half", 1)]
        {
            let filter = memory.values.remove(key.as_bytes()).flatten().expect("a filter");
            let mut value = values::into_raw(filter);
            let record = fake::saved(value);
            for (moves, expected) in
                [(Moves::None, 0), (Moves::All, allocations), (Moves::All, allocations)]
            {
                let before = value;
                let count = fake::while_it_moves(moves, || {
                    // SAFETY: the value is live, and nobody else uses it.
                    let more =
                        unsafe { move_value(ptr::null_mut(), ptr::null_mut(), &raw mut value) };
                    assert_eq!(more, 0);
                });
                assert_eq!(count, expected, "{key}");
                assert_eq!(value == before, expected == 0, "{key}");
                assert!(fake::saved(value) == record, "{key}");
            }
            // SAFETY: `into_raw` made it, and it was moved as the server does.
            let filter = *unsafe { Box::from_raw(value.cast::<Filter>()) };
            memory.values.insert(key.into(), Some(filter));
        }
        for key in ["fixed", "grown", "window", "compat"] {
            let found = run_line(&mut memory, &format!("MEXISTS {key} a b missing"));
            assert_eq!(found, Reply::Bools(vec![true, true, false]), "{key}");
            run_line(&mut memory, &format!("INSERT {key} ITEMS c d"));
        }
    }
}
