import type { KeyValues } from "./browser.js";

export interface OwnLease {
    lockId: string;
    lease: string;
    /** The tab that took it. */
    tab: string;
}

/**
 * The leases that tabs of this browser took for a user, so that another of its tabs can take one over in one step, also
 * when its tab is frozen or gone. Whoever uses the browser next is another user, and is not offered them. They are
 * secrets, but what reads this storage is of the same origin, and can act as its pages.
 */
export class OwnLeases {
    constructor(
        private readonly storage: KeyValues,
        private readonly user = "",
    ) {}

    get(name: string): OwnLease | null {
        try {
            const read = JSON.parse(this.storage.getItem(this.key(name)) ?? "null") as Partial<OwnLease> | null;
            const { lockId, lease, tab } = read ?? {};
            return lockId && lease && tab ? { lockId, lease, tab } : null;
        } catch {
            return null;
        }
    }

    put(name: string, own: OwnLease): void {
        try {
            this.storage.setItem(this.key(name), JSON.stringify(own));
        } catch {
            // No room: other tabs have to ask, as other browsers do.
        }
    }

    /** Leaves alone what another tab has put there since. */
    remove(name: string, lockId: string): void {
        if (this.get(name)?.lockId === lockId) this.storage.removeItem(this.key(name));
    }

    private key(name: string): string {
        return `holdfast:lease:${encodeURIComponent(this.user)}:${name}`;
    }
}
