use bytemuck::Pod;
use latens_corpus::WordId;
use safetensors::Dtype;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Element type of an array in a model file, with the names of safetensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names say it")]
pub enum ElementType {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    BF16,
    F32,
    F64,
}

impl ElementType {
    /// Every type, with its counterpart in safetensors.
    const ALL: [(ElementType, Dtype); 13] = [
        (ElementType::Bool, Dtype::BOOL),
        (ElementType::U8, Dtype::U8),
        (ElementType::U16, Dtype::U16),
        (ElementType::U32, Dtype::U32),
        (ElementType::U64, Dtype::U64),
        (ElementType::I8, Dtype::I8),
        (ElementType::I16, Dtype::I16),
        (ElementType::I32, Dtype::I32),
        (ElementType::I64, Dtype::I64),
        (ElementType::F16, Dtype::F16),
        (ElementType::BF16, Dtype::BF16),
        (ElementType::F32, Dtype::F32),
        (ElementType::F64, Dtype::F64),
    ];

    pub(super) fn of_safetensors(dtype: Dtype) -> Option<ElementType> {
        ElementType::ALL.iter().find(|(_, theirs)| *theirs == dtype).map(|&(ours, _)| ours)
    }

    pub(super) fn to_safetensors(self) -> Dtype {
        let (_, theirs) = ElementType::ALL[self as usize];
        theirs
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_safetensors().fmt(f)
    }
}

/// A Rust type that arrays in a model file can hold.
pub trait Element: Pod + Send + Sync {
    /// The corresponding element type.
    const DTYPE: ElementType;

    /// Whether the value is neither infinite nor NaN.
    fn is_finite(&self) -> bool {
        true
    }
}

macro_rules! integers {
    ($($integer:ty => $dtype:ident),*) => {
        $(impl Element for $integer { const DTYPE: ElementType = ElementType::$dtype; })*
    };
}

macro_rules! floats {
    ($($float:ty => $dtype:ident),*) => {
        $(impl Element for $float {
            const DTYPE: ElementType = ElementType::$dtype;

            fn is_finite(&self) -> bool {
                <$float>::is_finite(*self)
            }
        })*
    };
}

integers! {
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    i8 => I8, i16 => I16, i32 => I32, i64 => I64, WordId => U32
}
floats! { f32 => F32, f64 => F64 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_types_have_the_names_of_safetensors() {
        for (place, (ours, theirs)) in ElementType::ALL.into_iter().enumerate() {
            assert_eq!(ours as usize, place);
            assert_eq!(ElementType::of_safetensors(theirs), Some(ours));
            assert_eq!(serde_json::json!(ours), serde_json::json!(theirs));
        }
        assert_eq!(ElementType::of_safetensors(Dtype::F8_E4M3), None);
    }
}
