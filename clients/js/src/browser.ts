/**
 * What a program has of a browser. Nothing of it is required: without storage nothing outlives the page, without a
 * channel each tab is on its own, and without Web Locks (pages that came over plain HTTP, Node.js) a tab that is not
 * seen has no stream of events.
 */
export interface Browser {
    /** Shared by the tabs of a browser. */
    storage: KeyValues;
    /** Of one tab; a duplicated tab begins with a copy. */
    tabStorage: KeyValues;
    locks: LockManager | null;
    channel: Channel | null;
    page: Page | null;
}

export interface KeyValues {
    /** Nothing of it outlives the page. */
    readonly isVolatile?: boolean;
    readonly length: number;
    key(index: number): string | null;
    getItem(key: string): string | null;
    setItem(key: string, value: string): void;
    removeItem(key: string): void;
}

/** Messages to the other tabs of this browser. */
export interface Channel {
    postMessage(message: unknown): void;
    addEventListener(type: "message", listener: (event: MessageEvent) => void): void;
    removeEventListener(type: "message", listener: (event: MessageEvent) => void): void;
    close(): void;
}

/** The events of a page's life, and whether it is seen. */
export interface Page {
    readonly isHidden: boolean;
    onChange(listener: (change: PageChange) => void): () => void;
}

/**
 * `left`: it may never come back. `returned`: from the back-forward cache, or it was frozen. `network`: it came or
 * went. `stored`: another tab has changed what they share.
 */
export type PageChange = "shown" | "hidden" | "left" | "returned" | "network" | "stored" | "input";

class MemoryValues implements KeyValues {
    readonly isVolatile = true;
    private readonly values = new Map<string, string>();

    get length(): number {
        return this.values.size;
    }
    key(index: number): string | null {
        return [...this.values.keys()][index] ?? null;
    }
    getItem(key: string): string | null {
        return this.values.get(key) ?? null;
    }
    setItem(key: string, value: string): void {
        this.values.set(key, value);
    }
    removeItem(key: string): void {
        this.values.delete(key);
    }
}

/** A browser may refuse storage: then reading the property throws. */
function storageOr(read: () => KeyValues | undefined): KeyValues {
    try {
        return read() ?? new MemoryValues();
    } catch {
        return new MemoryValues();
    }
}

class DocumentPage implements Page {
    constructor(private readonly document: Document) {}

    get isHidden(): boolean {
        return this.document.visibilityState === "hidden";
    }

    onChange(listener: (change: PageChange) => void): () => void {
        const stop = new AbortController();
        const { signal } = stop;
        const { document } = this;
        const visibility = (): void => listener(this.isHidden ? "hidden" : "shown");
        document.addEventListener("visibilitychange", visibility, { signal });
        document.addEventListener("resume", () => listener("returned"), { signal });
        window.addEventListener("pageshow", (event) => event.persisted && listener("returned"), { signal });
        for (const type of ["online", "offline"]) window.addEventListener(type, () => listener("network"), { signal });
        window.addEventListener("storage", () => listener("stored"), { signal });
        window.addEventListener("pagehide", () => listener("left"), { signal });
        for (const type of ["input", "keydown", "pointerdown"])
            document.addEventListener(type, () => listener("input"), { signal, capture: true, passive: true });
        return () => stop.abort();
    }
}

/** The browser that this program runs in, or what there is of one. `scope` separates applications of one origin. */
export function thisBrowser(scope: string): Browser {
    return {
        storage: storageOr(() => globalThis.localStorage),
        tabStorage: storageOr(() => globalThis.sessionStorage),
        locks: globalThis.navigator?.locks ?? null,
        channel: typeof BroadcastChannel === "function" ? new BroadcastChannel(`holdfast:${scope}`) : null,
        page: typeof document === "undefined" ? null : new DocumentPage(document),
    };
}
