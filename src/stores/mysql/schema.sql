-- Holdfast's tables in MySQL, MariaDB and TiDB. Times are milliseconds of UTC, identities are UUIDs.
-- data is the exact value with a checksum, and what counts. The other columns repeat parts of it for people, for
-- queries and for fences; a row whose columns contradict its data blocks its lock.
-- Names are bytes: no collation may take X, x and 'x ' for one lock.

CREATE TABLE IF NOT EXISTS holdfast_locks (
    name        VARBINARY(255) NOT NULL PRIMARY KEY,
    -- The highest that was ever granted. 0, with seq 0: the row was made ready, and the lock was never used.
    token       BIGINT         NOT NULL DEFAULT 0,
    -- The lease; NULL while the lock is free.
    lock_id     CHAR(36) CHARACTER SET ascii COLLATE ascii_bin,
    holder      TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    operation   TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    reason      TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    acquired_at BIGINT,
    expires_at  BIGINT,
    -- 1: the lease ends with the connection that holds its GET_LOCK, too.
    session     TINYINT        NOT NULL DEFAULT 0,
    -- Of the newest audit event.
    seq         BIGINT         NOT NULL DEFAULT 0,
    changed_at  BIGINT         NOT NULL DEFAULT 0,
    data        MEDIUMBLOB
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS holdfast_queue (
    name        VARBINARY(255) NOT NULL,
    lock_id     CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    number      BIGINT         NOT NULL,
    holder      TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    expires_at  BIGINT         NOT NULL,
    data        MEDIUMBLOB     NOT NULL,
    PRIMARY KEY (name, lock_id),
    KEY holdfast_queue_order (name, number, expires_at)
) ENGINE = InnoDB;

-- Rows are added, and never changed. Only Prune removes some, and needs DELETE on this table for it.
CREATE TABLE IF NOT EXISTS holdfast_audit (
    name        VARBINARY(255) NOT NULL,
    seq         BIGINT         NOT NULL,
    at          BIGINT         NOT NULL,
    event       VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    token       BIGINT         NOT NULL,
    lock_id     CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    holder      TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    actor       TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    reason      TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    data        MEDIUMBLOB     NOT NULL,
    PRIMARY KEY (name, seq),
    KEY holdfast_audit_time (at, name, seq)
) ENGINE = InnoDB;

-- Its one row is written last: a store without it is not finished, and nobody has used it. A format of 0 is one that is
-- being upgraded: it may be read, and the next change goes on with it.
CREATE TABLE IF NOT EXISTS holdfast_meta (
    id          TINYINT        NOT NULL PRIMARY KEY,
    format      INT            NOT NULL,
    store_id    CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    created_at  BIGINT         NOT NULL,
    -- Becomes 1 with the first lock, and is never changed again: so that tables without locks tell whether somebody has
    -- emptied them.
    used        TINYINT        NOT NULL DEFAULT 0
) ENGINE = InnoDB;
