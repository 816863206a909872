-- Holdfast's tables in PostgreSQL. Times are milliseconds of UTC, names are the bytes of UTF-8.
-- data is the whole value with a checksum, and written_at the store's clock when it was written; the other columns
-- repeat what people, queries and fences need. A row whose data does not agree with them blocks its lock.
-- Another schema than "holdfast" is this text with the other name in its place. A role that only uses the store needs
-- USAGE of the schema, SELECT on all of it, UPDATE (used) on meta, INSERT and UPDATE on locks, INSERT on audit, and all
-- on queue. Who prunes the audit log needs DELETE on audit as well.

DO $$ BEGIN
    IF to_regnamespace('"holdfast"') IS NULL THEN CREATE SCHEMA "holdfast"; END IF;
END $$;

CREATE TABLE "holdfast".meta (
    id          smallint NOT NULL PRIMARY KEY CHECK (id = 1),
    format      bigint   NOT NULL,
    store_id    uuid     NOT NULL,
    created_at  bigint   NOT NULL,
    -- Becomes true with the first lock, and is never changed again: so that tables without locks tell whether somebody
    -- has emptied them.
    used        boolean  NOT NULL DEFAULT false
);

-- A row without data is a lock that was never granted. Half of each page stays free, so that a change of a lock can be
-- written beside what it replaces and touches no index.
CREATE TABLE "holdfast".locks (
    name         bytea   NOT NULL PRIMARY KEY CHECK (octet_length(name) BETWEEN 1 AND 255),
    token        bigint  NOT NULL DEFAULT 0 CHECK (token >= 0 AND token < 9007199254740992),
    -- The lease; NULL while the lock is free.
    lock_id      uuid,
    holder       text,
    user_name    text,
    operation    text,
    reason       text,
    acquired_at  bigint,
    renewed_at   bigint,
    expires_at   bigint,
    -- Of the advisory lock that the holder's connection keeps, if the lease ends with that connection.
    session_key  bigint,
    -- The newest audit event: number and time.
    seq          bigint  NOT NULL DEFAULT 0 CHECK (seq >= 0),
    changed_at   bigint,
    written_at   bigint,
    data         bytea,
    CHECK ((seq = 0) = (data IS NULL)),
    CHECK ((lock_id IS NULL) = (expires_at IS NULL))
) WITH (fillfactor = 50);

CREATE TABLE "holdfast".queue (
    name        bytea   NOT NULL,
    number      bigint  NOT NULL CHECK (number >= 1),
    lock_id     uuid    NOT NULL,
    holder      text    NOT NULL,
    expires_at  bigint  NOT NULL,
    written_at  bigint  NOT NULL,
    data        bytea   NOT NULL,
    PRIMARY KEY (name, number),
    UNIQUE (name, lock_id)
) WITH (fillfactor = 70);

CREATE TABLE "holdfast".audit (
    name       bytea   NOT NULL,
    seq        bigint  NOT NULL CHECK (seq >= 1),
    at         bigint  NOT NULL,
    event      text    NOT NULL,
    token      bigint  NOT NULL CHECK (token >= 0 AND token < 9007199254740992),
    lock_id    uuid    NOT NULL,
    holder     text    NOT NULL,
    user_name  text    NOT NULL,
    actor      text    NOT NULL,
    reason     text    NOT NULL,
    data       bytea   NOT NULL,
    PRIMARY KEY (name, seq)
);

CREATE INDEX audit_time ON "holdfast".audit (at);

-- Tokens only rise, whoever writes: these stop a mistaken statement typed into a SQL shell, too.
CREATE FUNCTION "holdfast".refuse() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    RAISE EXCEPTION 'holdfast: %', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER token_rises BEFORE UPDATE ON "holdfast".locks FOR EACH ROW
WHEN (NEW.token < OLD.token OR NEW.seq < OLD.seq OR NEW.name <> OLD.name)
EXECUTE FUNCTION "holdfast".refuse('the token of a lock never falls');

CREATE TRIGGER record_stays BEFORE DELETE ON "holdfast".locks FOR EACH ROW
EXECUTE FUNCTION "holdfast".refuse('the record of a lock is never deleted');

CREATE TRIGGER records_stay BEFORE TRUNCATE ON "holdfast".locks FOR EACH STATEMENT
EXECUTE FUNCTION "holdfast".refuse('the records of locks are never deleted');

CREATE TRIGGER events_stay BEFORE TRUNCATE ON "holdfast".audit FOR EACH STATEMENT
EXECUTE FUNCTION "holdfast".refuse('the audit log is cut by holdfast prune alone');

-- What undoes a change that was decided before the lock was read, and does not fit.
CREATE FUNCTION "holdfast".not_as_expected() RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    RAISE EXCEPTION 'holdfast: a lock is not as it was; it is read, and the change decided again'
        USING ERRCODE = 'serialization_failure';
END $$;

-- For people: SELECT * FROM holdfast.status.
CREATE VIEW "holdfast".status AS
SELECT convert_from(name, 'UTF8') AS name,
       CASE WHEN lock_id IS NULL THEN 'free'
            WHEN expires_at <= floor(extract(epoch FROM clock_timestamp()) * 1000) THEN 'expired'
            ELSE 'held' END AS state,
       token, lock_id, holder, user_name, operation, reason,
       to_timestamp(acquired_at / 1000.0) AS acquired_at, to_timestamp(expires_at / 1000.0) AS expires_at, seq
FROM "holdfast".locks
WHERE seq > 0;

INSERT INTO "holdfast".meta (id, format, store_id, created_at)
VALUES (1, 3, gen_random_uuid(), floor(extract(epoch FROM clock_timestamp()) * 1000));
