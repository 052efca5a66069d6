-- ../mysql/0005_tallies.sql documents the columns.

ALTER TABLE topic ADD COLUMN tally BLOB;
ALTER TABLE count_delta ADD COLUMN tallies BLOB;
