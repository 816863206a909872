import { eventKinds, type AuditEvent, type Lock } from "../../../clients/js/src/documents";

// The same encoding as encode() in src/kernel/codec.cpp, so that a log is checked here and not by the daemon that sent
// it.

const utf8 = new TextEncoder();

function hexBytes(hex: string): Uint8Array {
    const digits = hex.replace(/-/g, "");
    return Uint8Array.from({ length: digits.length / 2 }, (_, i) => parseInt(digits.slice(2 * i, 2 * i + 2), 16));
}

function inByteOrder(a: Uint8Array, b: Uint8Array): number {
    for (let i = 0; i < Math.min(a.length, b.length); ++i) {
        const difference = (a[i] ?? 0) - (b[i] ?? 0);
        if (difference !== 0) return difference;
    }
    return a.length - b.length;
}

class Writer {
    private readonly parts: Uint8Array[] = [];

    number(value: number): void {
        const bytes = new Uint8Array(8);
        new DataView(bytes.buffer).setBigInt64(0, BigInt(value), true);
        this.parts.push(bytes);
    }

    raw(bytes: Uint8Array): void {
        this.parts.push(bytes);
    }

    bytes(bytes: Uint8Array): void {
        this.number(bytes.length);
        this.raw(bytes);
    }

    text(text: string | null): void {
        this.bytes(utf8.encode(text ?? ""));
    }

    take(): Uint8Array<ArrayBuffer> {
        const all = new Uint8Array(this.parts.reduce((sum, part) => sum + part.length, 0));
        let at = 0;
        for (const part of this.parts) {
            all.set(part, at);
            at += part.length;
        }
        return all;
    }
}

/** What the hash of an event covers. */
export function hashedPart(event: AuditEvent): Uint8Array<ArrayBuffer> {
    const out = new Writer();
    out.text(event.name);
    out.number(event.seq);
    out.number(Date.parse(event.at));
    out.number(eventKinds.indexOf(event.event) + 1);
    out.number(event.token);
    out.raw(hexBytes(event.lock_id));
    out.text(event.holder);
    out.text(event.user);
    out.text(event.actor);
    out.text(event.reason);
    const details = Object.entries(event.details)
        .map(([key, value]) => [utf8.encode(key), utf8.encode(value)] as const)
        .sort(([a], [b]) => inByteOrder(a, b));
    out.number(details.length);
    for (const [key, value] of details) {
        out.bytes(key);
        out.bytes(value);
    }
    out.raw(hexBytes(event.prev_hash));
    return out.take();
}

export type ChainCheck =
    | { state: "intact"; events: number; isWhole: boolean }
    | { state: "broken"; seq: number; why: string }
    | { state: "impossible"; why: string };

async function hashOf(event: AuditEvent): Promise<string> {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", hashedPart(event)));
    return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Checks events of one lock, oldest first, up to what the lock's record says. `isWhole` tells whether they reach back
 * to the oldest event that was not pruned.
 */
export async function checkChain(
    events: AuditEvent[],
    lock: Pick<Lock, "seq" | "chain" | "pruned_seq">,
): Promise<ChainCheck> {
    if (!globalThis.crypto?.subtle)
        return {
            state: "impossible",
            why: "This browser only computes hashes on pages that came over TLS or loopback.",
        };
    const broken = (seq: number, why: string): ChainCheck => ({ state: "broken", seq, why });
    const first = events[0];
    const isWhole = (first?.seq ?? lock.seq + 1) === lock.pruned_seq + 1;
    if (first?.seq === 1 && /[^0]/.test(first.prev_hash)) return broken(1, "it should be the first of its chain");
    let previous: AuditEvent | null = null;
    for (const event of events) {
        if (previous && event.seq !== previous.seq + 1) return broken(event.seq, "events are missing before it");
        if (previous && event.prev_hash !== previous.hash)
            return broken(event.seq, "it does not follow from the event before");
        if ((await hashOf(event)) !== event.hash) return broken(event.seq, "its content does not match its hash");
        previous = event;
    }
    if ((previous?.seq ?? 0) !== lock.seq) return broken(lock.seq, `the log ends at ${previous?.seq ?? 0}`);
    if (previous && previous.hash !== lock.chain) return broken(lock.seq, "it is not what the lock's record says");
    return { state: "intact", events: events.length, isWhole };
}
