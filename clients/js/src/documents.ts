// The documents of the daemon, as docs/reference/json.md has them.

export interface Override {
    lock_id: string;
    holder: string;
    user: string | null;
    reason: string | null;
    ttl_ms: number;
    asked_at: string;
    expires_at: string;
}

export interface Lock {
    name: string;
    state: "held" | "expired" | "free" | "unreadable";
    token: number;
    lock_id: string | null;
    holder: string | null;
    user: string | null;
    operation: string | null;
    reason: string | null;
    acquired_at: string | null;
    renewed_at: string | null;
    renew_seq: number | null;
    expires_at: string | null;
    max_until: string | null;
    waiters: number;
    override: Override | null;
    meta: Record<string, string>;
    ttl_ms: number | null;
    as_of: string;
    seq: number;
    pruned_seq: number;
    chain: string;
    may_be_stale?: boolean;
}

export interface Grant extends Lock {
    /** `<lock_id>.<lease_key>`, a secret: who has it is the holder. */
    lease: string;
    stolen_from: { holder: string; lock_id: string; token: number; expired_at: string; user: string | null } | null;
}

/** In the order of their numbers, which the hashes of events cover. */
export const eventKinds = [
    "acquired",
    "renewed",
    "released",
    "stolen",
    "broken",
    "transferred",
    "revived",
    "override_requested",
    "override_approved",
    "override_denied",
    "pruned",
    "expired",
    "fenced",
    "repaired",
] as const;
export type EventKind = (typeof eventKinds)[number];

export interface AuditEvent {
    seq: number;
    at: string;
    name: string;
    event: EventKind;
    token: number;
    lock_id: string;
    holder: string | null;
    user: string | null;
    actor: string | null;
    reason: string | null;
    details: Record<string, string>;
    prev_hash: string;
    hash: string;
}

export interface Session {
    user: string | null;
    role: "viewer" | "holder" | "admin";
    prefixes: string[];
    /** `viewer`, `holder:team-a`. */
    grants?: string[];
    auth: "open" | "token" | "cookie" | "proxy";
}

export interface Finding {
    name: string;
    ok: boolean;
    detail: string;
}

export interface StoreDocument {
    store_id: string | null;
    grade: string;
    reasons: string[];
    properties: Record<string, unknown>;
    version?: string;
    store?: string;
    checks?: Finding[];
}

export interface ErrorBody {
    code: string;
    message: string;
    hint?: string | null;
    holder?: Lock | null;
    retry_after_ms?: number | null;
}
