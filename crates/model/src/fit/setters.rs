/// Defines a chainable setter for each field of a parameter struct.
///
/// Parameter structs are `#[non_exhaustive]`, so that new parameters are not breaking changes; other crates set values
/// through setters. Fields listed after `optional` are `Option`s; their setters take a value or an `Option`.
///
/// ```
/// #[derive(Default)]
/// struct LdaParams {
///     n_topics: usize,
///     alpha: Option<f64>,
/// }
/// latens_model::setters!(LdaParams { n_topics: usize; optional alpha: f64 });
///
/// let params = LdaParams::default().n_topics(50).alpha(0.1);
/// assert_eq!((params.n_topics, params.alpha), (50, Some(0.1)));
/// ```
#[macro_export]
macro_rules! setters {
    (
        $params:ident {
            $($name:ident: $type:ty),* $(,)?
            $(; optional $($optional:ident: $inner:ty),* $(,)?)?
        }
    ) => {
        impl $params {
            $(
                #[doc = concat!("Sets [`", stringify!($name), "`](field@Self::", stringify!($name), ").")]
                #[must_use]
                pub fn $name(mut self, $name: $type) -> Self {
                    self.$name = $name;
                    self
                }
            )*
            $($(
                #[doc = concat!("Sets [`", stringify!($optional), "`](field@Self::", stringify!($optional), ").")]
                #[must_use]
                pub fn $optional(mut self, $optional: impl Into<Option<$inner>>) -> Self {
                    self.$optional = $optional.into();
                    self
                }
            )*)?
        }
    };
}
