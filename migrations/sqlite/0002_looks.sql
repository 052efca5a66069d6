-- What lists of topics and of dead letters are read by.

CREATE INDEX by_name ON topic (namespace, name);
CREATE INDEX deaths ON dead_letter (topic, died_at, seq);
