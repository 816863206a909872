-- Holdfast's tables in SQLite. Times are milliseconds of UTC, identities are UUIDs, hashes are SHA-256.
-- crc is CRC-32C over the whole row, and a record contradicts columns that do not belong to it: a row that was
-- changed by anything but Holdfast blocks its lock. boot_id and clock_offset_ms say by which clock a row's
-- deadlines were written. Every process compiles all of this before it does anything else, so what a checksum
-- says is not said again by a CHECK.

PRAGMA application_id = 1212957766;

PRAGMA user_version = 3;

CREATE TABLE holdfast_meta (
    id          INTEGER NOT NULL PRIMARY KEY,
    store_id    TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    crc         INTEGER NOT NULL
) STRICT;

-- Rows that change stand in the order of their making, and indexes lead to them: a tree sorted by name would keep
-- rows in its inner nodes, and write several pages where one row changes.

CREATE TABLE holdfast_locks (
    id           INTEGER NOT NULL PRIMARY KEY,
    name         TEXT    NOT NULL UNIQUE,
    token        INTEGER NOT NULL,
    -- The lease; NULL while the lock is free.
    lock_id      TEXT,
    holder       TEXT,
    operation    TEXT,
    acquired_at  INTEGER,
    expires_at   INTEGER,
    -- The number of the newest audit event.
    seq          INTEGER NOT NULL,
    -- All that Holdfast knows of the lock, these columns included, with a checksum.
    record       BLOB    NOT NULL
) STRICT;

CREATE TABLE holdfast_queue (
    name             TEXT    NOT NULL,
    number           INTEGER NOT NULL CHECK (number >= 1),
    lock_id          TEXT    NOT NULL CHECK (length(lock_id) = 36),
    holder           TEXT    NOT NULL,
    expires_at       INTEGER NOT NULL,
    boot_id          TEXT    NOT NULL,
    clock_offset_ms  INTEGER NOT NULL,
    -- All that Holdfast knows of the waiter, but for the clock.
    ticket           BLOB    NOT NULL,
    crc              INTEGER NOT NULL,
    PRIMARY KEY (name, lock_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_audit (
    -- In the order of writing, which is that of time unless the clock was put back.
    id         INTEGER NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    event      TEXT    NOT NULL,
    token      INTEGER NOT NULL,
    lock_id    TEXT    NOT NULL,
    holder     TEXT    NOT NULL,
    user       TEXT    NOT NULL,
    actor      TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    details    TEXT    NOT NULL,
    prev_hash  BLOB    NOT NULL,
    hash       BLOB    NOT NULL,
    -- The latest time of this event and all before it: who looks for newer ones need not look further back.
    newest_at  INTEGER NOT NULL,
    UNIQUE (name, seq)
) STRICT;

CREATE INDEX holdfast_locks_held ON holdfast_locks (name) WHERE lock_id IS NOT NULL;

CREATE INDEX holdfast_queue_order ON holdfast_queue (name, number, expires_at, boot_id, clock_offset_ms);

-- Tokens only rise, whoever writes: these stop a mistaken statement typed into a SQL shell, too. Holdfast itself
-- says the same in its own statements, and switches them off, which halves what it takes to compile a change.

CREATE TRIGGER holdfast_locks_token_rises BEFORE UPDATE ON holdfast_locks
WHEN NEW.token < OLD.token OR NEW.token >= 9007199254740992
    OR NEW.seq < OLD.seq OR NEW.name <> OLD.name OR NEW.id <> OLD.id
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: the token of a lock never falls');
END;

CREATE TRIGGER holdfast_locks_not_replaced BEFORE INSERT ON holdfast_locks
WHEN EXISTS (SELECT 1 FROM holdfast_locks WHERE name = NEW.name OR id = NEW.id)
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: the record of a lock is never replaced');
END;

CREATE TRIGGER holdfast_locks_stay BEFORE DELETE ON holdfast_locks
BEGIN
    SELECT RAISE(ROLLBACK, 'holdfast: the record of a lock is never deleted');
END;
