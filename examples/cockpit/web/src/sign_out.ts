import type { Browser } from "../../../../clients/js/src/browser";
import type { Client } from "../../../../clients/js/src/client";
import { Drafts } from "../../../../clients/js/src/drafts";
import { HoldfastError } from "../../../../clients/js/src/errors";
import { OwnLeases } from "../../../../clients/js/src/own_leases";
import { h } from "../../../../web/src/base/dom";
import { plural } from "../../../../web/src/base/text";
import { api, locks, type Project } from "./api";
import { ask } from "./dialogs";
import type { Notices } from "./notices";
import { moveToServer } from "./project_drafts";

export interface SignedIn {
    browser: Browser;
    client: Client;
    projects: Project[];
    tab: string;
    user: string;
    closePage: () => Promise<void>;
}

interface SignOutMessage {
    kind: "cockpit_signed_out";
    user: string;
}

/** Nothing of a user who is gone stays in this page: neither in sight nor in memory. */
const leave = (): void => location.assign("/");

/**
 * Leaves nothing of the user in this browser for whoever uses it next: the tabs that died give their locks back, too,
 * drafts go to the server, and the other tabs forget what they show.
 */
export async function signOut(who: SignedIn): Promise<void> {
    const { browser, tab, user } = who;
    await who.closePage();
    await giveBack(who);
    const drafts = new Drafts(browser.storage, tab, user);
    const left = await moveToServer(drafts);
    const finish = async (): Promise<void> => {
        for (const { document, tab: whose } of left) drafts.remove(document, whose);
        try {
            await api.signOut();
        } catch (error) {
            if (!(error instanceof HoldfastError)) throw error;
            // Said by the page that comes: it asks who is signed in.
        }
        browser.channel?.postMessage({ kind: "cockpit_signed_out", user } satisfies SignOutMessage);
        leave();
    };
    if (left.length === 0) return finish();
    const what = plural(left.length, "draft");
    const text = `The server did not take ${what} of yours. Signing out forgets what is left here.`;
    const stay = { label: "Stay signed in", isFirst: true, run: () => location.reload() };
    ask("Sign out?", [h("p", {}, text)], [{ label: "Sign out and forget", run: () => void finish() }, stay]);
}

/** Leases of tabs that were killed: nobody else would give them back. */
async function giveBack({ browser, client, projects, user }: SignedIn): Promise<void> {
    const leases = new OwnLeases(browser.storage, user);
    for (const name of projects.map(({ id }) => locks.edit(id))) {
        const own = leases.get(name);
        if (own === null) continue;
        leases.remove(name, own.lockId);
        try {
            await (await client.adopt(name, own.lease, { renewal: "by_owner" })).release();
        } catch {
            // It was over, or ends by itself.
        }
    }
}

let stopHearing = (): void => {};

/** Another tab of this browser has signed the user out. */
export function hearSignOut(user: string, { channel }: Browser): void {
    stopHearing();
    const hear = ({ data }: MessageEvent): void => {
        const message = data as SignOutMessage | null;
        if (message?.kind === "cockpit_signed_out" && message.user === user) leave();
    };
    channel?.addEventListener("message", hear);
    stopHearing = () => channel?.removeEventListener("message", hear);
}

let isChecking = false;
let wasSaid = false;

/**
 * The server says that this is not the user who is signed in. Somebody else must not see this page; when nobody is, its
 * user can sign in again elsewhere, and go on here with what was typed.
 */
export async function checkSignedOut(user: string, browser: Browser, notices: Notices): Promise<void> {
    if (isChecking) return;
    isChecking = true;
    try {
        const now = await api.whoIs();
        const isAnother = now !== null && now !== user;
        if (isAnother || (now === null && browser.channel === null)) leave();
        else if (now === null && !wasSaid)
            notices.say("You are signed out. Sign in again in another tab: what you typed stays here.");
        wasSaid = now === null;
    } catch {
        // Asked again with the next refusal.
    }
    isChecking = false;
}
