-- The rights of Forebay's account, on its own schemas only: to read and change rows, and to create, change and drop
-- tables. `forebay migrate` also creates the schemas, which these rights allow. The account comes first:
--
--   CREATE USER forebay IDENTIFIED BY 'choose one';
--
-- Nothing else is needed if the server has the settings of forebay.cnf. Rights that let an account write to a
-- read-only server would break a planned switch of servers.
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX ON `forebay\_%`.* TO forebay;
