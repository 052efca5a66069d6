-- What items and dead letters remember of their last failed deliveries (`crates/store/src/sql/failures.rs`).

ALTER TABLE item ADD COLUMN last_failures BLOB NULL COMMENT 'packed: failed deliveries, the latest first, of which five count; NULL before the first';
ALTER TABLE dead_letter ADD COLUMN last_failures BLOB NULL COMMENT 'those of the former item, with the one that it died of';
