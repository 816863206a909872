import type { Channel } from "./browser.js";
import { pause } from "./calls.js";

/** For the other tab to keep what was typed in it. */
const yieldMs = 1_000;

/** Tells the tab whose lease this is that another one goes on with it, and waits a moment: it may be asleep. */
export async function askToYield(channel: Channel, lockId: string): Promise<void> {
    const done = new AbortController();
    const hear = ({ data }: MessageEvent): void => {
        if (data?.kind === "edit_yielded" && data.lockId === lockId) done.abort();
    };
    channel.addEventListener("message", hear);
    channel.postMessage({ kind: "edit_yield", lockId });
    await pause(yieldMs, done.signal);
    channel.removeEventListener("message", hear);
}

/** Calls `keep` before another tab goes on with the lease that `lockId` tells. Returns what ends that. */
export function whenAskedToYield(
    channel: Channel,
    lockId: () => string | undefined,
    keep: () => Promise<void>,
): () => void {
    const answer = async (asked: string): Promise<void> => {
        await keep();
        channel.postMessage({ kind: "edit_yielded", lockId: asked });
    };
    const hear = ({ data }: MessageEvent): void => {
        if (data?.kind === "edit_yield" && data.lockId === lockId()) void answer(data.lockId);
    };
    channel.addEventListener("message", hear);
    return () => channel.removeEventListener("message", hear);
}
