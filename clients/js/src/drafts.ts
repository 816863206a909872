import type { KeyValues } from "./browser.js";

/** What somebody typed and nobody saved. */
export interface Draft {
    /** What it is a draft of, as the application calls it. */
    document: string;
    text: string;
    /** The version that it began from. */
    base: string;
    /** The tab in which it was typed. */
    tab: string;
    /** When it was kept, RFC 3339. */
    keptAt: string;
}

const prefix = "holdfast:draft:";
/** Older ones make room for new ones. */
const oldMs = 30 * 24 * 3_600_000;

/**
 * Drafts in the storage of this browser: they outlive the loss of a lock, the page and the tab. Each tab has one draft
 * of a document, and sees those of the other tabs, too. Those of other users of the browser are not shown: `user` is
 * whose they are. No draft is removed for its age alone, because the clock of a machine may be wrong by years.
 */
export class Drafts {
    constructor(
        private readonly storage: KeyValues,
        private readonly tab: string,
        private readonly user: string,
    ) {}

    /** False if it does not outlive the page: the storage is full, or the browser refuses it. */
    keep(document: string, text: string, base: string): boolean {
        const draft: Draft = { document, text, base, tab: this.tab, keptAt: new Date().toISOString() };
        const key = this.key(document, this.tab);
        const value = JSON.stringify(draft);
        if (!this.isStored(key, value)) {
            this.removeOld();
            if (!this.isStored(key, value)) return false;
        }
        return this.storage.isVolatile !== true;
    }

    /** The drafts of a document, newest first. */
    of(document: string): Draft[] {
        const start = this.key(document, "");
        return this.keys(start)
            .map((key) => this.read(key))
            .filter((draft): draft is Draft => draft?.document === document)
            .sort((a, b) => b.keptAt.localeCompare(a.keptAt));
    }

    /** All that this user has in this browser. */
    all(): Draft[] {
        return this.keys(`${prefix}${encodeURIComponent(this.user)}:`)
            .map((key) => this.read(key))
            .filter((draft): draft is Draft => draft !== null);
    }

    /** Forgets a draft: it was saved, or is not wanted. */
    remove(document: string, tab = this.tab): void {
        this.storage.removeItem(this.key(document, tab));
    }

    private key(document: string, tab: string): string {
        return prefix + [this.user, document, tab].map(encodeURIComponent).join(":");
    }

    private isStored(key: string, value: string): boolean {
        try {
            this.storage.setItem(key, value);
            return true;
        } catch {
            return false;
        }
    }

    private keys(start: string): string[] {
        return Array.from({ length: this.storage.length }, (_, i) => this.storage.key(i)).filter(
            (key): key is string => key?.startsWith(start) ?? false,
        );
    }

    private read(key: string): Draft | null {
        try {
            const draft = JSON.parse(this.storage.getItem(key) ?? "null") as Draft | null;
            return typeof draft?.text === "string" && typeof draft.keptAt === "string" ? draft : null;
        } catch {
            return null;
        }
    }

    private removeOld(): void {
        const now = Date.now();
        for (const key of this.keys(prefix)) {
            const draft = this.read(key);
            if (draft && now - Date.parse(draft.keptAt) > oldMs) this.storage.removeItem(key);
        }
    }
}
