//! Value enums of flags that mirror an enum of the library.

/// Declares a value enum with the variants of a library enum, their help texts, and both conversions.
macro_rules! choice {
    (
        $(#[$attribute:meta])*
        $visibility:vis $name:ident for $library:ty {
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

        impl From<$library> for $name {
            fn from(choice: $library) -> $name {
                match choice { $(<$library>::$variant => $name::$variant),+ }
            }
        }
    };
}

pub(crate) use choice;
