//! Reads the lists of a patch: a second implementation of "A patch" in docs/FORMAT.md, bit by bit.

use std::collections::BTreeMap;

use super::Content;

/// The bits that are left, lowest first.
type Bits = std::vec::IntoIter<bool>;

fn bits(bytes: &[u8]) -> Bits {
    let all = bytes.iter().flat_map(|byte| (0..8).map(move |i| byte >> i & 1 == 1));
    all.collect::<Vec<_>>().into_iter()
}

/// Zeros up to the next one.
fn zeros(bits: &mut Bits) -> Option<u64> {
    bits.position(|bit| bit).map(|zeros| zeros as u64)
}

fn number(bits: &mut Bits, width: u64) -> Option<u64> {
    (0..width).try_fold(0, |number, i| Some(number | u64::from(bits.next()?) << i))
}

fn gamma(bits: &mut Bits) -> Option<u64> {
    let width = zeros(bits).filter(|&width| width < 64)?;
    Some(1 << width | number(bits, width)?)
}

/// Ascending numbers with counts, which fill the bytes.
fn ascending(
    bytes: &[u8],
    len: u64,
    parameter: u64,
    is_counted: bool,
) -> Option<BTreeMap<u64, u64>> {
    let (mut bits, mut all, mut least) = (bits(bytes), BTreeMap::new(), Some(0_u64));
    for _ in 0..len {
        let high = u128::from(zeros(&mut bits)?) << parameter;
        let gap = u64::try_from(high | u128::from(number(&mut bits, parameter)?)).ok()?;
        let key = least?.checked_add(gap)?;
        least = key.checked_add(1);
        all.insert(key, if is_counted { gamma(&mut bits)? } else { 1 });
    }
    (bits.len() < 8 && !bits.any(|bit| bit)).then_some(all)
}

/// The content that these lists make of `old`. `None` if they are not those of any patch for it.
#[must_use]
pub fn read(bytes: &[u8], old: &Content) -> Option<Content> {
    let mut directory = bits(bytes);
    let mut entries = Vec::new();
    for _ in 0..9 {
        let len = gamma(&mut directory)? - 1;
        let mut entry = || Some((number(&mut directory, 6)?, gamma(&mut directory)?));
        entries.push((len, if len > 0 { entry()? } else { (0, 0) }));
    }
    let mut rest = &bytes[bytes.len() - directory.len() / 8..];
    let padding = directory.len() as u64 % 8;
    if number(&mut directory, padding)? != 0 {
        return None;
    }
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
