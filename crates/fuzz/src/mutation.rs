//! Changes of inputs, determined by a seed.

/// What a value of an outline can become, besides another value of the file.
const VALUES: [&str; 22] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "4294967295",
    "18446744073709551615",
    "0.5",
    "-0.5",
    "-2",
    "1e-45",
    "1e-30",
    "1e19",
    "-1e19",
    "3e38",
    "-3e38",
    "1e308",
    "inf",
    "-inf",
    "NaN",
];

/// A small random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % n.max(1)
    }
}

/// Changes one value of the outline in `data[..size]`, and returns its new size. Changes that know nothing of outlines
/// mostly make files that are rejected at once. `None`, and no change, for one seed in eight, and if there is no value
/// or no room.
pub fn change_value(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> Option<usize> {
    let mut random = Random(u64::from(seed));
    let outline = std::str::from_utf8(&data[..size]).ok().filter(|_| random.below(8) > 0)?;
    let parts = outline.split([' ', '\n', ':', ',', '[', ']', '{', '}']);
    let values: Vec<&str> = parts.filter(|part| part.parse::<f64>().is_ok()).collect();
    let value = values.get(random.below(values.len()))?;
    let other = values.get(random.below(values.len()))?;
    let at = value.as_ptr().addr() - outline.as_ptr().addr();
    let number = || value.parse::<f64>().unwrap_or(0.0);
    let new = match random.below(12) {
        0 => String::new(),
        1 => format!("{value} {other}"),
        2 => (*other).to_owned(),
        3 => value.parse().map_or(String::new(), |n: u64| n.wrapping_add(1).to_string()),
        4 => value.parse().map_or(String::new(), |n: u64| n.wrapping_sub(1).to_string()),
        5 => (-number()).to_string(),
        6 => (number() * 1e10).to_string(),
        7 => (number() * 1e-10).to_string(),
        _ => VALUES[random.below(VALUES.len())].to_owned(),
    };
    let changed = [&outline[..at], &new, &outline[at + value.len()..]].concat();
    let room = data.get_mut(..changed.len()).filter(|room| room.len() <= max_size)?;
    room.copy_from_slice(changed.as_bytes());
    Some(changed.len())
}

/// The input with one to three changes: single bits, missing and repeated parts, parts of another input, extreme bytes.
/// For outlines, mostly single values.
pub fn mutated(input: &[u8], other: &[u8], is_outline: bool, seed: u32) -> Vec<u8> {
    let mut random = Random(u64::from(seed) ^ 0x9e37_79b9_7f4a_7c15);
    let mut data = input.to_vec();
    for _ in 0..=random.below(3) {
        let size = data.len();
        if is_outline {
            data.resize(size + 64, 0);
            let max_size = data.len();
            let changed = change_value(&mut data, size, max_size, random.below(1 << 30) as u32);
            data.truncate(changed.unwrap_or(size));
            if changed.is_some() {
                continue;
            }
        }
        change_bytes(&mut data, other, &mut random);
    }
    data
}

fn change_bytes(data: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(data.len());
    let end = (at + 1 + random.below(16)).min(data.len());
    match random.below(7) {
        0 | 1 if !data.is_empty() => data[at] ^= 1 << random.below(8),
        2 => data.truncate(at),
        3 => drop(data.drain(at..end)),
        4 => data.splice(at..at, data[at..end].to_vec()).for_each(drop),
        5 => {
            let from = random.below(other.len());
            data.truncate(at);
            data.extend_from_slice(&other[from..]);
        }
        _ => data.splice(at..at, [[0x00, 0xff, b'\n', b'"', b'9'][random.below(5)]]).for_each(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_change_and_most_seeds_make_one() {
        let outline = b"{\"n\":3}\na u64 1 2\nb f32[2,1] 0.5 -1\n";
        for is_outline in [false, true] {
            let all: Vec<_> =
                (0..200).map(|seed| mutated(outline, b"other", is_outline, seed)).collect();
            let again = (0..200).map(|seed| mutated(outline, b"other", is_outline, seed));
            assert!(again.eq(all.iter().cloned()));
            assert!(all.iter().filter(|changed| **changed != outline).count() > 180);
        }
        assert_eq!(mutated(b"", b"", false, 1).len(), mutated(b"", b"", false, 1).len());
    }
}
