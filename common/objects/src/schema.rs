//! What a class of objects looks like: its fields in wire order, and a fingerprint of them.

/// What values a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// A whole number.
    Integer,
    /// Text.
    Text,
    /// Text that is meant to be a uuid; not checked.
    Uuid,
    /// True or false.
    Boolean,
    /// A time with whole seconds.
    DateTime,
    /// A map from text to text.
    DictOfText,
    /// A list of texts.
    ListOfText,
    /// A list of maps with free values.
    ListOfDicts,
    /// One of these texts.
    Enum(&'static [&'static str]),
    /// Another object, by class name.
    Object(&'static str),
}

/// What a null in a field that cannot be null becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Default {
    /// Nothing: null is refused.
    None,
    /// A number.
    Integer(i64),
    /// A truth value.
    Boolean(bool),
}

/// One field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The name on the wire.
    pub name: &'static str,
    /// Its values.
    pub kind: FieldKind,
    /// Whether null is a value.
    pub nullable: bool,
    /// What null becomes where it is none.
    pub default: Default,
}

impl Field {
    /// A field that may be null.
    pub const fn nullable(name: &'static str, kind: FieldKind) -> Self {
        Self {
            name,
            kind,
            nullable: true,
            default: Default::None,
        }
    }

    /// A field that may not be null.
    pub const fn required(name: &'static str, kind: FieldKind) -> Self {
        Self {
            name,
            kind,
            nullable: false,
            default: Default::None,
        }
    }

    /// A field that may not be null, and what null becomes.
    pub const fn defaulted(name: &'static str, kind: FieldKind, default: Default) -> Self {
        Self {
            name,
            kind,
            nullable: false,
            default,
        }
    }
}

/// A class of objects at the version we speak.
#[derive(Debug, PartialEq, Eq)]
pub struct Schema {
    /// The class name.
    pub name: &'static str,
    /// The version, `major.minor`.
    pub version: (u32, u32),
    /// The fields in wire order.
    pub fields: &'static [Field],
}

impl Schema {
    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The version as text.
    pub fn version_text(&self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }

    /// A number over the name and the fields that changes with any change of them. A change of it without a
    /// higher version breaks peers: a test pins it.
    pub fn fingerprint(&self) -> String {
        let mut text = String::from(self.name);
        for field in self.fields {
            text.push_str(&format!(
                "|{}:{:?}:{}:{:?}",
                field.name, field.kind, field.nullable, field.default
            ));
        }
        format!("{:016x}", fnv1a(text.as_bytes()))
    }
}

/// FNV-1a: enough to notice a change, and needs no library.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
