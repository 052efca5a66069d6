//! Settings as they are set, with their version.

use forebay_types::TopicSettings;

/// Settings with their version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct VersionedSettings {
    /// The settings.
    pub settings: TopicSettings,
    /// Their version.
    pub version: u64,
}
