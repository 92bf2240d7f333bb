//! Value enums of flags that mirror an enum of the library.

/// Declares a value enum with variants of a library enum, their help texts, and conversions: `for` converts in both
/// directions, `into` only into the library enum, which may have more variants.
macro_rules! choice {
    (
        $(#[$attribute:meta])*
        $visibility:vis $name:ident into $library:ty {
            $($(#[$variant_attribute:meta])* $variant:ident $help:literal),+ $(,)?
        }
    ) => {
        #[derive(Clone, Copy, clap::ValueEnum)]
        $(#[$attribute])*
        $visibility enum $name {
            $(#[doc = $help] $(#[$variant_attribute])* $variant),+
        }

        impl From<$name> for $library {
            fn from(choice: $name) -> $library {
                match choice { $($name::$variant => <$library>::$variant),+ }
            }
        }
    };
    (
        $(#[$attribute:meta])*
        $visibility:vis $name:ident for $library:ty {
            $($(#[$variant_attribute:meta])* $variant:ident $help:literal),+ $(,)?
        }
    ) => {
        $crate::choice::choice!($(#[$attribute])* $visibility $name into $library {
            $($(#[$variant_attribute])* $variant $help),+
        });

        impl From<$library> for $name {
            fn from(choice: $library) -> $name {
                match choice { $(<$library>::$variant => $name::$variant),+ }
            }
        }
    };
}

pub(crate) use choice;
