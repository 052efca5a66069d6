//! Walks over JSON before it is decoded, and refuses what the decoder would take, or says what it would not:
//! fields and names of enums that do not exist, with the nearest one; keys that appear twice; times without a
//! zone; deep nesting; and more values than any request has. A value takes one byte of JSON and hundreds of
//! memory.

use std::{cell::Cell, fmt};

use forebay_types::{Timestamp, TimestampError, instead, nearest};
use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use rustc_hash::FxHashSet;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Arrays and objects in one another.
const DEPTH_MAX: usize = 64;

/// Number of values that a request may still have.
pub(crate) struct ValueBudget(Cell<usize>);

impl ValueBudget {
    /// At most this many values.
    pub fn new(values: usize) -> Self {
        Self(Cell::new(values))
    }

    /// There were more.
    pub(crate) fn used_up(&self) -> bool {
        self.0.get() == 0
    }
}

/// Shape that a value should have, as far as it matters here.
#[derive(Clone)]
enum Shape {
    /// A message, by its fields.
    Message(MessageDescriptor),
    /// A list of values of a kind.
    List(Kind),
    /// An object whose keys are free, with values of a kind.
    Map(Kind),
    /// The name of a value, or its number.
    Enum(EnumDescriptor),
    /// A point in time.
    Time,
    /// Anything: the decoder checks it.
    Any,
    /// Nothing: the message has no such field. This is what to say of it.
    Unknown(String),
}

impl Shape {
    fn of_field(field: &FieldDescriptor) -> Self {
        match field.kind() {
            Kind::Message(entry) if field.is_map() => Self::Map(entry.map_entry_value_field().kind()),
            kind if field.is_list() => Self::List(kind),
            kind => Self::of_kind(kind),
        }
    }

    fn of_kind(kind: Kind) -> Self {
        match kind {
            Kind::Message(message) if message.full_name() == "google.protobuf.Timestamp" => Self::Time,
            // Well-known types have a JSON of their own, as durations.
            Kind::Message(message) if message.package_name() == "google.protobuf" => Self::Any,
            Kind::Message(message) => Self::Message(message),
            Kind::Enum(kind) if kind.full_name() != "google.protobuf.NullValue" => Self::Enum(kind),
            _ => Self::Any,
        }
    }

    /// Of a field that a message does not have.
    fn unknown(message: &MessageDescriptor, name: &str) -> Self {
        let fields: Vec<_> = message.fields().collect();
        let instead = instead(name, fields.iter().map(FieldDescriptor::json_name));
        Self::Unknown(format!("is no field of {}; {instead}", message.name()))
    }
}

/// Checks one value, and those in it.
pub struct Check<'a> {
    /// The shape that it should have.
    shape: Shape,
    /// Arrays and objects around it.
    depth: usize,
    /// Shared by all values.
    left: &'a ValueBudget,
}

impl<'a> Check<'a> {
    /// Checks a whole message.
    pub fn new(message: MessageDescriptor, left: &'a ValueBudget) -> Self {
        Self { shape: Shape::Message(message), depth: 0, left }
    }

    /// The check of a value in this one.
    fn inner(&self, shape: Shape) -> Self {
        Check { shape, depth: self.depth + 1, left: self.left }
    }

    fn enter<E: Error>(&self) -> Result<(), E> {
        match self.depth < DEPTH_MAX {
            true => Ok(()),
            false => Err(E::custom(format!("more than {DEPTH_MAX} arrays and objects are in one another"))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Check<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if let Shape::Unknown(why) = self.shape {
            return Err(D::Error::custom(why));
        }
        match self.left.0.get().checked_sub(1) {
            Some(left) if left > 0 => self.left.0.set(left),
            _ => {
                self.left.0.set(0);
                return Err(D::Error::custom("the request has too many values"));
            }
        }
        deserializer.deserialize_any(self)
    }
}

/// A key of an object that was seen.
#[derive(PartialEq, Eq, Hash)]
enum Key {
    /// A field, in either of its spellings.
    Field(u32),
    /// Another text.
    Text(String),
}

impl<'de> Visitor<'de> for Check<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.shape {
            Shape::Message(_) | Shape::Map(_) => "an object",
            Shape::List(_) => "an array",
            Shape::Enum(_) => "the name or the number of an enum's value",
            Shape::Time => "a time",
            Shape::Any | Shape::Unknown(_) => "a value",
        })
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match &self.shape {
            Shape::Enum(kind) if kind.get_value_by_name(text).is_none() => {
                let names: Vec<_> = kind.values().map(|value| value.name().to_owned()).collect();
                let near = nearest(text, names.iter().map(String::as_str));
                let near = near.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
                // The nearest name comes first: a long message is cut.
                Err(E::custom(format!("{text:?} is not one of {}{near}", names.join(", "))))
            }
            Shape::Time => match text.parse::<Timestamp>() {
                Err(error @ TimestampError::NoZone(_)) => Err(E::custom(error)),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        self.enter()?;
        let shape = match &self.shape {
            Shape::List(kind) => Shape::of_kind(kind.clone()),
            _ => Shape::Any,
        };
        while values.next_element_seed(self.inner(shape.clone()))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        self.enter()?;
        let mut seen = FxHashSet::default();
        while let Some(text) = entries.next_key::<String>()? {
            let field = match &self.shape {
                Shape::Message(message) => {
                    message.get_field_by_json_name(&text).or_else(|| message.get_field_by_name(&text))
                }
                _ => None,
            };
            let shape = match (&field, &self.shape) {
                (Some(field), _) => Shape::of_field(field),
                (None, Shape::Map(kind)) => Shape::of_kind(kind.clone()),
                (None, Shape::Message(message)) => Shape::unknown(message, &text),
                _ => Shape::Any,
            };
            let shown = text.clone();
            if !seen.insert(field.map_or(Key::Text(text), |field| Key::Field(field.number()))) {
                return Err(A::Error::custom(format!("the key {shown:?} is there twice")));
            }
            entries.next_value_seed(self.inner(shape))?;
        }
        Ok(())
    }
}
