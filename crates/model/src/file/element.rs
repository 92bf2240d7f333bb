use bytemuck::Pod;
use latens_corpus::WordId;
use safetensors::Dtype;

/// A type of which an array in a model file can be made.
pub trait Element: Pod + Send + Sync {
    /// How safetensors names it.
    const DTYPE: Dtype;

    /// Whether it is neither infinite nor NaN.
    fn is_finite(&self) -> bool {
        true
    }
}

macro_rules! integers {
    ($($integer:ty => $dtype:ident),*) => {
        $(impl Element for $integer { const DTYPE: Dtype = Dtype::$dtype; })*
    };
}

macro_rules! floats {
    ($($float:ty => $dtype:ident),*) => {
        $(impl Element for $float {
            const DTYPE: Dtype = Dtype::$dtype;

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
