//! Reads the lists of a patch: a second implementation of "A patch" in docs/FORMAT.md, bit by bit.

use std::collections::BTreeMap;

use super::Content;

/// Bits, lowest first.
struct Bits(Vec<bool>, usize);

impl Bits {
    fn of(bytes: &[u8]) -> Self {
        let bit = |i: usize| bytes[i / 8] >> (i % 8) & 1 == 1;
        Self((0..8 * bytes.len()).map(bit).collect(), 0)
    }

    fn bit(&mut self) -> Option<bool> {
        self.1 += 1;
        self.0.get(self.1 - 1).copied()
    }

    fn number(&mut self, bits: u64) -> Option<u64> {
        (0..bits).try_fold(0, |number, i| Some(number | u64::from(self.bit()?) << i))
    }

    fn zeros(&mut self) -> Option<u64> {
        let mut zeros = 0;
        while !self.bit()? {
            zeros += 1;
        }
        Some(zeros)
    }

    fn gamma(&mut self) -> Option<u64> {
        let bits = self.zeros().filter(|&bits| bits < 64)?;
        Some(1 << bits | self.number(bits)?)
    }

    /// Whether only zeros are left, and fewer than eight.
    fn is_at_end(&self) -> bool {
        self.0.len() - self.1 < 8 && !self.0[self.1..].contains(&true)
    }
}

/// Ascending numbers with counts, which fill the bytes.
fn ascending(
    bytes: &[u8],
    len: u64,
    parameter: u64,
    is_counted: bool,
) -> Option<BTreeMap<u64, u64>> {
    let (mut bits, mut all, mut least) = (Bits::of(bytes), BTreeMap::new(), Some(0_u64));
    for _ in 0..len {
        let high = u128::from(bits.zeros()?) << parameter;
        let gap = u64::try_from(high | u128::from(bits.number(parameter)?)).ok()?;
        let number = least?.checked_add(gap)?;
        least = number.checked_add(1);
        all.insert(number, if is_counted { bits.gamma()? } else { 1 });
    }
    bits.is_at_end().then_some(all)
}

/// The content that these lists make of `old`. `None` if they are not those of any patch for it.
#[must_use]
pub fn read(bytes: &[u8], old: &Content) -> Option<Content> {
    let mut directory = Bits::of(bytes);
    let mut entries = Vec::new();
    for _ in 0..9 {
        let len = directory.gamma()? - 1;
        let entry = if len > 0 { (directory.number(6)?, directory.gamma()?) } else { (0, 0) };
        entries.push((len, entry));
    }
    let padding = directory.1.next_multiple_of(8) - directory.1;
    if directory.number(padding as u64)? != 0 {
        return None;
    }
    let mut rest = &bytes[directory.1 / 8..];
    let mut lists = Vec::new();
    for (i, (len, (parameter, length))) in entries.into_iter().enumerate() {
        let (bytes, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        lists.push(ascending(bytes, len, parameter, i % 3 == 2)?);
        rest = behind;
    }
    let [names, stash, corrections] =
        [0, 1, 2].map(|i| changed(&old.0[i], &lists[3 * i], &lists[3 * i + 1], &lists[3 * i + 2]));
    (rest.is_empty() && lists[8].is_empty()).then_some(Content([names?, stash?, corrections?]))
}

/// The new keys. `None` if a list names what does not exist, or says what is the case anyway.
fn changed(
    old: &BTreeMap<u64, u64>,
    gone: &BTreeMap<u64, u64>,
    added: &BTreeMap<u64, u64>,
    recounted: &BTreeMap<u64, u64>,
) -> Option<BTreeMap<u64, u64>> {
    let exist = gone.keys().all(|&rank| rank < old.len() as u64);
    if !exist || added.keys().any(|key| old.contains_key(key)) {
        return None;
    }
    let stays = |(rank, _): &(u64, _)| !gone.contains_key(rank);
    let kept = (0..).zip(old).filter(stays).map(|(_, (&key, &count))| (key, count));
    let mut new: BTreeMap<u64, u64> = kept.collect();
    new.extend(added);
    let mut keys = (0_u64..).zip(new.values_mut());
    for (rank, &count) in recounted {
        let (_, present) = keys.find(|(it, _)| it == rank)?;
        if *present == count {
            return None;
        }
        *present = count;
    }
    Some(new)
}
