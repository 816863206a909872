import type { Browser } from "./browser.js";
import { pause } from "./calls.js";

const key = "holdfast:tab";
/** A page that is being left may keep its Web Lock for a moment after the next one has begun. */
const patienceMs = 500;

function newId(): string {
    const bytes = crypto.getRandomValues(new Uint8Array(6));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Takes the identity for as long as this page lives; false if another tab has it. */
function claimed(locks: LockManager, id: string): Promise<boolean> {
    return new Promise((resolve) => {
        const signal = AbortSignal.timeout(patienceMs);
        const keep = (): Promise<never> => {
            resolve(true);
            return new Promise(() => undefined);
        };
        locks.request(`holdfast:tab:${id}`, { signal }, keep).catch(() => resolve(false));
    });
}

/** Asks the other tabs whether one of them is called so. */
async function isTaken(channel: NonNullable<Browser["channel"]>, id: string): Promise<boolean> {
    let taken = false;
    const listen = ({ data }: MessageEvent): void => {
        if (data?.kind === "tab_is" && data.id === id) taken = true;
    };
    channel.addEventListener("message", listen);
    channel.postMessage({ kind: "tab_ask", id });
    await pause(patienceMs);
    channel.removeEventListener("message", listen);
    return taken;
}

/**
 * Who this tab is: the same after the page was loaded again, and another one in every other tab, also in one that was
 * duplicated and so begins with the same storage. Asked once by each page.
 */
export async function tabIdentity(browser: Browser): Promise<string> {
    const { tabStorage, locks, channel } = browser;
    let id = tabStorage.getItem(key);
    const isFree = async (old: string): Promise<boolean> => {
        if (locks) return claimed(locks, old);
        return channel === null || !(await isTaken(channel, old));
    };
    if (id === null || !(await isFree(id))) {
        id = newId();
        try {
            tabStorage.setItem(key, id);
        } catch {
            // No room: it is another tab after it was loaded again.
        }
        if (locks) await claimed(locks, id);
    }
    const own = id;
    channel?.addEventListener("message", ({ data }) => {
        if (data?.kind === "tab_ask" && data.id === own) channel.postMessage({ kind: "tab_is", id: own });
    });
    return own;
}
