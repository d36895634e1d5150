//! Changing buckets: an entry into an empty slot, out of its slot, over another one.

use alloc::vec::Vec;

use super::{Addressing, Pair, Table, byte_index, either, load_both, position};
use crate::buffer::Buffer;
use crate::layout::{Apart, Form, Quad, Word};

impl Table<Buffer> {
    /// The bytes of each segment, where segments are whole bytes.
    pub(crate) fn segments_mut(&mut self) -> Vec<&mut [u8]> {
        let bits = u64::from(self.geometry.segment_buckets()) * self.lanes.bucket_bits();
        let segments = 1 << self.geometry.segment_bits();
        debug_assert!(bits.is_multiple_of(8) || segments == 1);
        let bytes = self.bytes.as_mut();
        bytes.chunks_mut(byte_index(bits / 8)).take(segments).collect()
    }
}

impl<A: Addressing> Table<Buffer, A> {
    /// Empties every bucket.
    pub(crate) fn clear(&mut self) {
        self.bytes.as_mut().fill(0);
    }

    /// Fills an empty slot of the emptier bucket of the pair at `bits` with `slot`, where the pair has at most `most` copies of it.
    #[inline(always)]
    pub(crate) fn put(&mut self, bits: [u64; 2], slot: u64, most: u64) -> Put {
        if self.lanes.form() == Form::Plain {
            self.put_in::<u64, false>(bits, slot, most)
        } else {
            self.put_other(bits.into(), slot, most)
        }
    }

    /// The same where slots are not plain, or wide. Two numbers, because an array would be written to memory before every put, this one called or not. And a function for semi-sorted
    /// slots, which saves fewer registers than one for all forms.
    #[inline(never)]
    fn put_other(&mut self, bits: (u64, u64), slot: u64, most: u64) -> Put {
        match self.lanes.form() {
            Form::Sorted => self.put_sorted(bits, slot, most),
            _ => self.put_in_form(bits, slot, most),
        }
    }

    #[inline(never)]
    fn put_sorted(&mut self, bits: (u64, u64), slot: u64, most: u64) -> Put {
        self.put_in::<u64, true>(bits.into(), slot, most)
    }

    #[inline(never)]
    fn put_in_form(&mut self, bits: (u64, u64), slot: u64, most: u64) -> Put {
        in_form!(self, put_in(bits.into(), slot, most))
    }

    #[inline(always)]
    fn put_in<W: Word, const SORTED: bool>(&mut self, bits: [u64; 2], slot: u64, most: u64) -> Put {
        let bytes = self.bytes.as_mut();
        let words = load_both::<W, SORTED>(bytes, bits);
        match Pair::put::<SORTED>(&self.lanes, words, bits[0] == bits[1], (slot, most)) {
            Ok((chosen, change)) => {
                change_in::<W, SORTED>(bytes, either(chosen, bits), change);
                Put::Done
            }
            Err(refused) => refused,
        }
    }

    /// Empties a slot of the pair at `bits` that holds `slot`.
    #[inline(always)]
    pub(crate) fn take(&mut self, bits: [u64; 2], slot: u64) -> Taken {
        if self.lanes.form() == Form::Plain {
            self.exchange_in::<u64, false>(bits, slot, 0)
        } else {
            self.take_other(bits.into(), slot)
        }
    }

    /// As [`put_other`](Self::put_other).
    #[inline(never)]
    fn take_other(&mut self, bits: (u64, u64), slot: u64) -> Taken {
        match self.lanes.form() {
            Form::Sorted => self.take_sorted(bits, slot),
            _ => self.exchange_in_form(bits, slot, 0),
        }
    }

    #[inline(never)]
    fn take_sorted(&mut self, bits: (u64, u64), slot: u64) -> Taken {
        self.exchange_in::<u64, true>(bits.into(), slot, 0)
    }

    /// Writes `new` over a slot of the pair at `bits` that holds `old`, which is then taken out.
    #[inline(always)]
    pub(crate) fn exchange(&mut self, bits: [u64; 2], old: u64, new: u64) -> Taken {
        match self.lanes.form() {
            Form::Plain => self.exchange_in::<u64, false>(bits, old, new),
            _ => self.exchange_in_form(bits.into(), old, new),
        }
    }

    /// As [`put_other`](Self::put_other).
    #[inline(never)]
    fn exchange_in_form(&mut self, bits: (u64, u64), old: u64, new: u64) -> Taken {
        in_form!(self, exchange_in(bits.into(), old, new))
    }

    #[inline(always)]
    fn exchange_in<W: Word, const SORTED: bool>(
        &mut self,
        bits: [u64; 2],
        old: u64,
        new: u64,
    ) -> Taken {
        let bytes = self.bytes.as_mut();
        let words = load_both::<W, SORTED>(bytes, bits);
        let pair = Pair::new::<SORTED>(&self.lanes, words, bits[0] == bits[1], old);
        let Some((chosen, change)) = pair.exchange::<SORTED>(&self.lanes, old, new) else {
            return Taken::Nothing;
        };
        change_in::<W, SORTED>(bytes, either(chosen, bits), change);
        if pair.has_one(&self.lanes) { Taken::Last } else { Taken::Copy }
    }

    /// Moves each entry of a plan, a bucket and what a slot of it holds, to where the next one is, the last one first, so that no entry is ever in no place; a copy of
    /// the last one is elsewhere already. `slot` goes to where the first one was.
    pub(crate) fn shift(&mut self, moves: &[(u64, u64)], slot: u64) {
        let arriving = moves.iter().rev().skip(1).map(|&(_, moved)| moved).chain([slot]);
        for (&(bucket, old), new) in moves.iter().rev().zip(arriving) {
            self.replace(bucket, old, new);
        }
    }

    /// Writes `new` over one slot of `bucket` that holds `old`; false, and nothing written, if there is none.
    ///
    /// With 0 for `old` this fills an empty slot, with 0 for `new` it empties one.
    pub(crate) fn replace(&mut self, bucket: u64, old: u64, new: u64) -> bool {
        in_any_form!(self, replace_in(bucket, old, new))
    }

    #[inline(always)]
    pub(super) fn replace_in<W: Word, const SORTED: bool>(
        &mut self,
        bucket: u64,
        old: u64,
        new: u64,
    ) -> bool {
        if self.is_one_part::<W, SORTED>() {
            let with = self.part.whole_with(self.whole(bucket), old, new);
            if let Some(word) = with {
                self.store::<u128, true>(bucket, word);
            }
            return with.is_some();
        }
        let word = self.load::<W, SORTED>(bucket);
        let equal = self.lanes.equal::<W, SORTED>(word, self.lanes.pattern::<W, SORTED>(old));
        let found = equal != W::ZERO;
        if found {
            let change = self.lanes.change::<W, SORTED>(word, equal, old, new);
            if W::IS_STORED {
                self.change_at::<W, SORTED>(bucket * self.lanes.bucket_bits(), change);
            } else {
                self.store_apart(bucket, self.lanes.slots::<W, SORTED>(word ^ change));
            }
        }
        found
    }

    /// Writes a bucket of at most 64 bits.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn set_word(&mut self, bucket: u64, word: u64) {
        self.store::<u64, true>(bucket, word);
    }

    #[inline(always)]
    pub(super) fn store<W: Word, const SORTED: bool>(&mut self, bucket: u64, word: W) {
        let bit = bucket * self.lanes.bucket_bits();
        let change = self.load_at::<W, SORTED>(bit) ^ word;
        self.change_at::<W, SORTED>(bit, change & self.lanes.bucket::<W>());
    }

    #[inline(always)]
    fn change_at<W: Word, const SORTED: bool>(&mut self, bit: u64, change: W) {
        change_in::<W, SORTED>(self.bytes.as_mut(), bit, change);
    }
}

/// Turns over the bits of the bucket at bit `bit` of these bytes that are set in `change`.
#[inline(always)]
pub(super) fn change_in<W: Word, const SORTED: bool>(bytes: &mut [u8], bit: u64, change: W) {
    let (byte, shift) = position::<SORTED>(bit);
    (W::read(bytes, byte) ^ (change << shift)).write(bytes, byte);
}

/// What became of a new copy of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// It has a slot.
    Done,
    /// Nothing was written: there are more copies than allowed, this many.
    Repeated(u64),
    /// Nothing was written: both buckets are full.
    Full,
}

/// What was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The only entry there was.
    Last,
    /// One of several equal ones.
    Copy,
    /// Nothing: there is none.
    Nothing,
}
