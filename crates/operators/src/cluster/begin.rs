//! First reading of the catalog, before a node starts.

use forebay_config::Config;
use forebay_membership::{BeginError, Begun};

use super::catalog::open_catalog;
use crate::shards::mysql_options;

/// Reads the catalog. Waits until it answers.
pub async fn begin(config: &Config) -> Result<Begun, BeginError> {
    let catalog = open_catalog(&config.catalog, &mysql_options(config)).map_err(BeginError::Catalog)?;
    forebay_membership::begin(catalog).await
}
