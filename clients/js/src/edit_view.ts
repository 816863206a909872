import type { Browser } from "./browser.js";
import type { Client } from "./client.js";
import type { Lock, Override } from "./documents.js";
import type { HoldfastError } from "./errors.js";
import type { Hold } from "./hold.js";
import type { SharedFeed } from "./shared_feed.js";

export interface EditOptions {
    client: Client;
    feed: SharedFeed;
    browser: Browser;
    /** Of `tabIdentity()`. */
    tab: string;
    /** The lock of what is edited. */
    name: string;
    /** This screen, as others see it. */
    holder: string;
    /** On whose behalf. A daemon that knows who calls puts that in its place, except where a lease changes hands. */
    user?: string;
    /** Nobody may type while this lock is held. */
    excludedBy?: string;
    /** Whether this user may edit at all. */
    mayEdit?: boolean;
    /** A lease is renewed after this time, if there was input meanwhile; a sixth of its time if nothing is said. */
    renewEveryMs?: number;
    /** A holder that did not renew for so long can be replaced; by default that is never offered. */
    staleAfterMs?: number;
    /** What becomes of the page while the daemon cannot be reached: it can be typed into, or it cannot. */
    whenUnreachable: "warn" | "read_only";
    /** Makes the resource refuse older holders, and reads it: before anything is edited under a new lease. */
    prepare?: (hold: Hold) => Promise<void>;
    /** The lock is about to be handed to somebody else: the last moment to keep what was typed. */
    beforeYield?: () => Promise<void> | void;
    onChange?: (view: EditView) => void;
}

/** `unguarded`: typed without a lock, because the daemon cannot be reached and the policy allows it. */
export type EditMode = "viewing" | "asking" | "editing" | "unguarded";

export type Obstacle =
    | { kind: "not_permitted" }
    | { kind: "propagating"; lock: Lock }
    /** `isOwn`: by another tab of this browser. `isStale`: it can be taken over. */
    | { kind: "held"; lock: Lock; isOwn: boolean; isStale: boolean }
    | { kind: "unreachable" };

/** How the last editing ended, unless its user ended it. */
export type Loss = { kind: "expired" | "taken" | "handed_over"; error: HoldfastError | null };

/** What became of a request for the lock. */
export type Asked =
    | { state: "pending"; expiresAt: string | null }
    | { state: "denied"; by: string | null; reason: string | null }
    | { state: "lapsed" };

export interface EditView {
    mode: EditMode;
    lock: Lock | null;
    /** Whether the text can be typed into now. */
    mayType: boolean;
    /** Why it cannot be edited, or not at once. */
    obstacle: Obstacle | null;
    loss: Loss | null;
    /** The last attempt that was refused, or not answered. */
    failure: HoldfastError | null;
    request: Asked | null;
    /** Somebody asks for the lock that is held here. */
    question: Override | null;
    isReachable: boolean;
}
