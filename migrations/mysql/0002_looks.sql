-- What lists of topics and of dead letters are read by.

ALTER TABLE topic ADD KEY by_name (namespace, name);
ALTER TABLE dead_letter ADD KEY deaths (topic, died_at);
