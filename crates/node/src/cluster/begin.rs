//! First reading of the catalog, before a node of a cluster starts.

use forebay_membership::{BeginError, Begun};

use super::catalog::open_catalog;
use crate::{config::Config, shards::mysql_options};

/// Reads the catalog, if one is configured. Waits until it answers.
pub async fn begin(config: &Config) -> Result<Option<Begun>, BeginError> {
    let Some(url) = &config.catalog else { return Ok(None) };
    let catalog = open_catalog(url, &mysql_options(config)).map_err(BeginError::Catalog)?;
    forebay_membership::begin(catalog).await.map(Some)
}
