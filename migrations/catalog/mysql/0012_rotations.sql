-- Which call gave a token its secret, so that a repeated one does not give it another. Programs that do not know the column
-- leave it; it follows from the secret too, so that it fits no secret of theirs.
-- From here on no program reads or writes the table request (0007). The release before does, so that a later migration drops it.

ALTER TABLE token ADD COLUMN rotation BINARY(32) NULL COMMENT 'SHA-256 of token.secret, and of caller and request id of the RotateToken that set it; another value, or NULL: not known';
