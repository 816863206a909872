// A browser for tests in Node.js: its tabs share one storage and one channel, as they do in a real one.
import type { Browser, Channel, KeyValues, PageChange } from "../../clients/js/src/browser";

export class FakeStorage implements KeyValues {
    private readonly values = new Map<string, string>();

    /** Characters that there is room for in a value, and how many values. */
    constructor(
        private readonly room = Infinity,
        private readonly most = Infinity,
    ) {}

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
        const isNew = !this.values.has(key);
        if (value.length > this.room || (isNew && this.values.size >= this.most))
            throw new DOMException("full", "QuotaExceededError");
        this.values.set(key, value);
    }
    removeItem(key: string): void {
        this.values.delete(key);
    }
}

type Listener = (event: MessageEvent) => void;

class FakeChannel implements Channel {
    readonly listeners = new Set<Listener>();

    constructor(private readonly all: Set<FakeChannel>) {
        all.add(this);
    }

    postMessage(message: unknown): void {
        const data: unknown = structuredClone(message);
        for (const other of this.all)
            if (other !== this)
                queueMicrotask(() => other.listeners.forEach((listener) => listener({ data } as MessageEvent)));
    }
    addEventListener(_: "message", listener: Listener): void {
        this.listeners.add(listener);
    }
    removeEventListener(_: "message", listener: Listener): void {
        this.listeners.delete(listener);
    }
    close(): void {
        this.all.delete(this);
    }
}

export class FakeTab implements Browser {
    readonly tabStorage = new FakeStorage();
    readonly locks = null;
    readonly channel: FakeChannel;
    private readonly listeners = new Set<(change: PageChange) => void>();
    readonly page = {
        isHidden: false,
        onChange: (listener: (change: PageChange) => void) => {
            this.listeners.add(listener);
            return () => void this.listeners.delete(listener);
        },
    };

    constructor(
        readonly storage: KeyValues,
        channels: Set<FakeChannel>,
    ) {
        this.channel = new FakeChannel(channels);
    }

    change(change: PageChange): void {
        for (const listener of this.listeners) listener(change);
    }

    /** From now on it neither hears nor says anything. */
    freeze(): void {
        this.channel.listeners.clear();
    }
}

export class FakeBrowser {
    readonly storage = new FakeStorage();
    private readonly channels = new Set<FakeChannel>();

    tab(): FakeTab {
        return new FakeTab(this.storage, this.channels);
    }
}
