//! The keys of a section: written once, as the fields of a struct with their comments and defaults. Reading
//! the file, the environment variables and the page about the configuration follow from them.

use std::time::Duration;

use toml::Value;

/// A section of the file.
pub struct Section {
    /// Its line in the file, such as `[node]`.
    pub heading: &'static str,
    /// Its comment.
    pub about: &'static str,
    /// Its keys.
    pub keys: Vec<Key>,
}

/// A key of a section.
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Its comment.
    pub about: &'static str,
    /// Its default, as the file would have it. Empty: it has none.
    pub default: String,
    /// Its value from the text of its environment variable.
    pub read: fn(&str) -> Value,
}

impl Section {
    /// Its name: the name of a table in the file.
    pub fn name(&self) -> &'static str {
        let path = self.heading.trim_matches(['[', ']']);
        path.split_once('.').map_or(path, |(name, _)| name)
    }

    /// The environment variable of a key. Sections of which there are several have none.
    pub fn variable(&self, key: &Key) -> Option<String> {
        let several = self.heading.starts_with("[[") || self.heading.contains('.');
        let name = match (self.name(), key.name) {
            ("access", "certificate") => return None,
            ("node", name) | ("access", name @ "bootstrap_token_file") => name.to_owned(),
            (section, name) => format!("{section}_{name}"),
        };
        (!several).then(|| format!("FOREBAY_{}", name.to_ascii_uppercase()))
    }
}

/// Declares the struct of a section. Each key has a comment, a type, and a default unless that is the type's.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $section:ident as $heading:literal {
            $(let $from:ident = $source:expr;)*
            $($(#[doc = $doc:literal])+ $key:ident: $type:ty $(= $default:expr)?,)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $section {
            $($(#[doc = $doc])+ pub $key: $type,)+
        }

        impl Default for $section {
            fn default() -> Self {
                $(let $from = $source;)*
                Self { $($key: $crate::keys::section!(@default $($default)?),)+ }
            }
        }

        impl $section {
            /// The same for readers.
            pub fn section() -> $crate::keys::Section {
                let defaults = Self::default();
                $crate::keys::Section {
                    heading: $heading,
                    about: concat!($($about, "\n"),+),
                    keys: vec![$($crate::keys::Key {
                        name: stringify!($key),
                        about: concat!($($doc),+),
                        default: $crate::keys::KeyType::shown(&defaults.$key, stringify!($key)),
                        read: <$type as $crate::keys::KeyType>::read,
                    }),+],
                }
            }
        }
    };
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
}
pub(crate) use section;

/// The type of a key.
pub(crate) trait KeyType {
    /// The value as the file has it, with what it is in other units. Empty: there is none.
    fn shown(&self, key: &str) -> String;

    /// The text of a variable as a value. A text of a wrong type is refused by the key.
    fn read(text: &str) -> Value;
}

impl<T: KeyType> KeyType for Option<T> {
    fn shown(&self, key: &str) -> String {
        self.as_ref().map(|value| value.shown(key)).unwrap_or_default()
    }

    fn read(text: &str) -> Value {
        T::read(text)
    }
}

impl KeyType for String {
    fn shown(&self, _: &str) -> String {
        format!("`{self}`")
    }

    fn read(text: &str) -> Value {
        Value::String(text.to_owned())
    }
}

impl KeyType for Vec<String> {
    fn shown(&self, _: &str) -> String {
        format!("`{self:?}`")
    }

    /// The texts between the commas.
    fn read(text: &str) -> Value {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        Value::Array(entries.map(String::read).collect())
    }
}

impl KeyType for bool {
    fn shown(&self, _: &str) -> String {
        format!("`{self}`")
    }

    fn read(text: &str) -> Value {
        text.parse().map_or_else(|_| other(text), Value::Boolean)
    }
}

impl KeyType for f64 {
    fn shown(&self, _: &str) -> String {
        self.to_string()
    }

    fn read(text: &str) -> Value {
        text.parse().map_or_else(|_| other(text), Value::Float)
    }
}

impl KeyType for u64 {
    fn shown(&self, key: &str) -> String {
        match other_unit(*self, key) {
            Some(other) => format!("{self} ({other})"),
            None => self.to_string(),
        }
    }

    fn read(text: &str) -> Value {
        text.parse().map_or_else(|_| other(text), Value::Integer)
    }
}

impl KeyType for u32 {
    fn shown(&self, key: &str) -> String {
        u64::from(*self).shown(key)
    }

    fn read(text: &str) -> Value {
        u64::read(text)
    }
}

impl KeyType for usize {
    fn shown(&self, key: &str) -> String {
        (*self as u64).shown(key)
    }

    fn read(text: &str) -> Value {
        u64::read(text)
    }
}

/// A text of another type than that of its key. The error names a number or a truth value, and no text.
fn other(text: &str) -> Value {
    let number = text.parse().map(Value::Integer);
    number.or_else(|_| text.parse().map(Value::Boolean)).unwrap_or_else(|_| String::read(text))
}

/// Milliseconds and bytes in the largest unit in which they are a whole number.
fn other_unit(value: u64, key: &str) -> Option<String> {
    let units: &[(u64, &str)] = match key.split('_').find(|word| matches!(*word, "ms" | "bytes"))? {
        "ms" => &[(86_400_000, "days"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")],
        _ => &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")],
    };
    let (size, unit) = units.iter().find(|(size, _)| value >= *size && value.is_multiple_of(*size))?;
    Some(format!("{} {unit}", value / size))
}

/// A length of time as a key has it.
pub fn ms(span: Duration) -> u64 {
    span.as_millis() as u64
}
