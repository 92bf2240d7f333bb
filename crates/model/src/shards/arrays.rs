//! Named arrays of numbers that add up.

use bytemuck::Pod;
use latens_store::FlatArray;
use std::collections::BTreeMap;

/// An array of one of the types that statistics consist of.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Numbers {
    /// Bytes. They do not add up.
    U8(FlatArray<u8>),
    /// 16-bit numbers. They do not add up.
    U16(FlatArray<u16>),
    /// 32-bit numbers, such as ids. They do not add up.
    U32(FlatArray<u32>),
    /// Counts.
    U64(FlatArray<u64>),
    /// Differences of counts.
    I64(FlatArray<i64>),
    /// Weights.
    F32(FlatArray<f32>),
    /// Expected counts and gradients.
    F64(FlatArray<f64>),
}

/// The type of the numbers of an array.
pub trait ShardNumber: Pod {
    /// Wraps an array.
    fn wrap(values: FlatArray<Self>) -> Numbers;
    /// The array, if it has this type.
    fn of(numbers: &Numbers) -> Option<&FlatArray<Self>>;
}

macro_rules! numbers {
    ($($type:ty, $variant:ident, $name:literal;)*) => {
        $(impl ShardNumber for $type {
            fn wrap(values: FlatArray<$type>) -> Numbers {
                Numbers::$variant(values)
            }

            fn of(numbers: &Numbers) -> Option<&FlatArray<$type>> {
                match numbers {
                    Numbers::$variant(values) => Some(values),
                    _ => None,
                }
            }
        })*

        impl Numbers {
            /// The name of the type in files.
            pub(super) fn type_name(&self) -> &'static str {
                match self { $(Numbers::$variant(_) => $name,)* }
            }

            /// The values as bytes.
            pub(super) fn bytes(&self) -> &[u8] {
                match self { $(Numbers::$variant(values) => bytemuck::cast_slice(values),)* }
            }

            /// Reads the array `name` of a container.
            pub(super) fn read(
                file: &latens_store::Container,
                name: &str,
                type_name: &str,
            ) -> Result<Numbers, latens_store::ContainerError> {
                match type_name {
                    $($name => file.array::<$type>(name).map(Numbers::$variant),)*
                    _ => Err(file.problem(format!("unknown type `{type_name}`"))),
                }
            }
        }
    };
}

numbers! {
    u8, U8, "u8";
    u16, U16, "u16";
    u32, U32, "u32";
    u64, U64, "u64";
    i64, I64, "i64";
    f32, F32, "f32";
    f64, F64, "f64";
}

/// Named arrays of numbers: the content of a broadcast, of statistics, or of what a shard keeps between rounds.
#[derive(Clone, Debug, Default)]
pub struct Arrays(pub(super) BTreeMap<String, Numbers>);

const KEYS: &str = ".keys";
const VALUES: &str = ".values";

impl Arrays {
    /// No arrays.
    pub fn new() -> Arrays {
        Arrays::default()
    }

    /// Adds or replaces an array.
    #[must_use]
    pub fn with<T: ShardNumber>(mut self, name: &str, values: impl Into<FlatArray<T>>) -> Arrays {
        self.0.insert(name.to_owned(), T::wrap(values.into()));
        self
    }

    /// Adds a sparse array: keys in ascending order with their values. The values of equal keys add up.
    #[must_use]
    pub fn with_sparse(self, name: &str, pairs: impl IntoIterator<Item = (u64, i64)>) -> Arrays {
        let (keys, values): (Vec<u64>, Vec<i64>) = pairs.into_iter().unzip();
        self.with(&format!("{name}{KEYS}"), keys).with(&format!("{name}{VALUES}"), values)
    }

    /// Whether there is an array `name`.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns an array, or a description of what is wrong with it.
    pub fn get<T: ShardNumber>(&self, name: &str) -> Result<&FlatArray<T>, String> {
        let found = self.0.get(name).ok_or_else(|| format!("the array `{name}` is missing"))?;
        T::of(found).ok_or_else(|| format!("the array `{name}` has the type {}", found.type_name()))
    }

    /// Returns an array of a given length.
    pub fn get_n<T: ShardNumber>(&self, name: &str, n: usize) -> Result<&FlatArray<T>, String> {
        let values = self.get::<T>(name)?;
        match values.len() {
            length if length == n => Ok(values),
            length => Err(format!("the array `{name}` has {length} values, expected {n}")),
        }
    }

    /// Returns the pairs of a sparse array.
    pub fn get_sparse(&self, name: &str) -> Result<Vec<(u64, i64)>, String> {
        let keys = self.get::<u64>(&format!("{name}{KEYS}"))?;
        let values = self.get_n::<i64>(&format!("{name}{VALUES}"), keys.len())?;
        if !keys.is_sorted_by(|a, b| a < b) {
            return Err(format!("the keys of `{name}` are not in ascending order"));
        }
        Ok(keys.iter().copied().zip(values.iter().copied()).collect())
    }

    /// Adds up arrays of the same names, types and lengths; sparse arrays by key. Integers must not overflow.
    pub fn plus(self, other: Arrays) -> Result<Arrays, String> {
        if !self.0.keys().eq(other.0.keys()) {
            return Err("their arrays have different names".to_owned());
        }
        let mut sums = Arrays::new();
        for (name, a) in &self.0 {
            if name.ends_with(VALUES) {
                continue;
            }
            if let Some(sparse) = name.strip_suffix(KEYS) {
                let pairs = merge(self.get_sparse(sparse)?, other.get_sparse(sparse)?);
                sums = sums.with_sparse(sparse, pairs.ok_or("a sum of counts overflows")?);
                continue;
            }
            sums.0.insert(name.clone(), sum(name, a, &other.0[name])?);
        }
        Ok(sums)
    }
}

fn sum(name: &str, a: &Numbers, b: &Numbers) -> Result<Numbers, String> {
    let overflow = || format!("the sum of `{name}` overflows");
    let lengths = |a: usize, b: usize| match a == b {
        true => Ok(()),
        false => Err(format!("`{name}` has {a} and {b} values")),
    };
    match (a, b) {
        (Numbers::F64(a), Numbers::F64(b)) => {
            lengths(a.len(), b.len())?;
            let sums: Vec<f64> = a.iter().zip(&**b).map(|(a, b)| a + b).collect();
            Ok(f64::wrap(sums.into()))
        }
        (Numbers::U64(a), Numbers::U64(b)) => {
            lengths(a.len(), b.len())?;
            let sums: Option<Vec<u64>> =
                a.iter().zip(&**b).map(|(a, b)| a.checked_add(*b)).collect();
            Ok(u64::wrap(sums.ok_or_else(overflow)?.into()))
        }
        (Numbers::I64(a), Numbers::I64(b)) => {
            lengths(a.len(), b.len())?;
            let sums: Option<Vec<i64>> =
                a.iter().zip(&**b).map(|(a, b)| a.checked_add(*b)).collect();
            Ok(i64::wrap(sums.ok_or_else(overflow)?.into()))
        }
        _ => {
            Err(format!("arrays `{name}` of {} and {} do not add up", a.type_name(), b.type_name()))
        }
    }
}

/// Adds up sparse arrays. `None` if a sum overflows.
fn merge(a: Vec<(u64, i64)>, b: Vec<(u64, i64)>) -> Option<Vec<(u64, i64)>> {
    let mut sums = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (None, None) => return Some(sums),
            (Some(x), Some(y)) if x.0 == y.0 => (x.0, x.1.checked_add(y.1)?),
            (Some(x), Some(y)) if x.0 < y.0 => *x,
            (Some(x), None) => *x,
            (_, Some(y)) => *y,
        };
        a.next_if(|x| x.0 == next.0);
        b.next_if(|y| y.0 == next.0);
        sums.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_arrays_add_up_by_place_and_sparse_arrays_by_key() {
        let a = Arrays::new().with("x", vec![1.5, 2.0]).with_sparse("n", [(1, 2), (5, -3)]);
        let b = Arrays::new().with("x", vec![0.5, 1.0]).with_sparse("n", [(0, 7), (5, 4), (9, 1)]);
        let sum = a.plus(b).unwrap();
        assert_eq!(**sum.get::<f64>("x").unwrap(), [2.0, 3.0]);
        assert_eq!(sum.get_sparse("n").unwrap(), [(0, 7), (1, 2), (5, 1), (9, 1)]);
    }

    #[test]
    fn arrays_that_do_not_match_are_refused() {
        let x = |values: Vec<u64>| Arrays::new().with("x", values);
        assert!(x(vec![1]).plus(x(vec![1, 2])).unwrap_err().contains("1 and 2 values"));
        assert!(x(vec![u64::MAX]).plus(x(vec![1])).unwrap_err().contains("overflows"));
        assert!(x(vec![1]).plus(Arrays::new().with("y", vec![1u64])).is_err());
        assert!(x(vec![1]).plus(Arrays::new().with("x", vec![1.0])).is_err());
        let a = Arrays::new().with_sparse("n", [(1, i64::MAX)]);
        assert!(a.clone().plus(a).is_err());
        let unsorted = Arrays::new().with_sparse("n", [(2, 1), (1, 1)]);
        assert!(unsorted.get_sparse("n").unwrap_err().contains("ascending"));
    }
}
