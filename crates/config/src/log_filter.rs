//! The log filter of a configuration.

use tracing_subscriber::{EnvFilter, filter::LevelFilter};

/// Reads a filter, as in `info,forebay_engine=debug`.
///
/// A word alone must be a level. The format takes it for the name of a target, whose events are then all
/// logged and no others, which is not what `inof` was to mean.
pub fn log_filter(directives: &str) -> Result<EnvFilter, String> {
    let is_info = directives.split(',').any(|it| it.trim().eq_ignore_ascii_case("info"));
    // A server closes idle connections, by its settings: that is no event of this program.
    let quiet = if is_info && !directives.contains("sqlx") { ",sqlx_core=warn" } else { "" };
    let filter = EnvFilter::try_new(format!("{directives}{quiet}"))
        .map_err(|error| format!("{directives:?}: {error}"))?;
    for directive in directives.split(',').filter(|directive| !directive.is_empty()) {
        if !directive.contains(['=', '[']) && directive.parse::<LevelFilter>().is_err() {
            return Err(format!(
                "{directive:?} is not a level (off, error, warn, info, debug, trace); \
                 a target needs one, as in {directive}=debug"
            ));
        }
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_targets_with_levels_are_filters() {
        for good in
            ["info", "WARN", "info,forebay_engine=debug", "off,forebay=trace", "[call{id=1}]=debug", "[call]"]
        {
            assert!(log_filter(good).is_ok(), "{good}");
        }
        let shown = |directives| log_filter(directives).unwrap().to_string();
        assert!(shown("info,forebay_engine=debug").contains("sqlx_core=warn"));
        for own in ["warn", "debug", "off", "info,sqlx_core::pool=debug"] {
            assert!(!shown(own).contains("sqlx_core=warn"), "{own}");
        }
        for wrong in ["inof", "info,forebay_engine", "forebay=loud", "a=b=c"] {
            assert!(log_filter(wrong).is_err(), "{wrong}");
        }
    }
}
