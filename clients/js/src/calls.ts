import { errorIn, HoldfastError, withoutAnswer, type Ending } from "./errors.js";

export interface CallOptions {
    /** Where the daemon is. In a page that it serves: the empty text. */
    url: string;
    /** An API token. Without one a page sends its cookies. */
    token?: string;
    /** How long one attempt may take. */
    timeoutMs?: number;
    fetch?: typeof fetch;
}

export type Query = Record<string, string | number | undefined>;

function withQuery(path: string, query: Query): string {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
    const text = search.toString();
    return text === "" ? path : `${path}?${text}`;
}

/** Single calls: each is sent once, and has one of three endings beside success. */
export class Calls {
    readonly url: string;
    private readonly fetch: typeof fetch;
    private readonly timeoutMs: number;
    private readonly token: string | undefined;
    /** The daemon's clock, as an answer told it, and when that came. It never runs ahead of the daemon's. */
    private daemonTime: { at: number; seen: number } | null = null;

    constructor(options: CallOptions) {
        this.url = options.url.replace(/\/$/, "");
        this.token = options.token;
        this.timeoutMs = options.timeoutMs ?? 20_000;
        this.fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    }

    get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
        return this.call<T>("GET", withQuery(path, query), undefined, this.timeoutMs, signal);
    }

    post<T>(path: string, body: unknown, signal?: AbortSignal, longerMs = 0): Promise<T> {
        return this.call<T>("POST", path, body, this.timeoutMs + longerMs, signal);
    }

    delete<T>(path: string): Promise<T> {
        return this.call<T>("DELETE", path, undefined, this.timeoutMs);
    }

    /** From a page that is being closed: sent without waiting for an answer, which nobody would read. */
    sendOnClose(path: string, body: unknown): void {
        const url = this.url + path;
        const sent = JSON.stringify(body);
        if (typeof Request === "function" && "keepalive" in Request.prototype) {
            const headers = this.headers({});
            this.addWriteHeaders(headers, true, this.timeoutMs);
            const init = { method: "POST", headers, body: sent, keepalive: true, credentials: "same-origin" } as const;
            this.fetch(url, init).catch(() => undefined);
            return;
        }
        // A beacon has no headers, so a daemon that wants Holdfast-Csrf or a token refuses it, and the lease runs out.
        globalThis.navigator?.sendBeacon?.(url, new Blob([sent], { type: "application/json" }));
    }

    /** A stream that stays open; its caller reads it. */
    async open(path: string, query: Query, accept: string, signal: AbortSignal): Promise<Response> {
        const headers = this.headers({ Accept: accept });
        let response: Response;
        try {
            response = await this.fetch(this.url + withQuery(path, query), { headers, signal, cache: "no-store" });
        } catch {
            throw withoutAnswer("unreached", "The daemon did not answer.");
        }
        if (response.ok) return response;
        throw (
            errorIn(this.parsed(await response.text()), response.status) ??
            withoutAnswer("unreached", "No stream came.")
        );
    }

    private async call<T>(
        method: string,
        path: string,
        body: unknown,
        timeoutMs: number,
        signal?: AbortSignal,
    ): Promise<T> {
        // A reading changes nothing, whatever became of it.
        const lost: Ending = method === "GET" ? "unreached" : "unknown";
        const headers = this.headers({ Accept: "application/json" });
        if (method !== "GET") this.addWriteHeaders(headers, body !== undefined, timeoutMs);
        const timeout = new AbortController();
        const timer = setTimeout(() => timeout.abort(), timeoutMs);
        const onAbort = (): void => timeout.abort();
        signal?.addEventListener("abort", onAbort);
        if (signal?.aborted) timeout.abort();
        let response: Response;
        let text: string;
        try {
            const sent = body === undefined ? null : JSON.stringify(body);
            response = await this.fetch(this.url + path, {
                method,
                headers,
                body: sent,
                credentials: "same-origin",
                cache: "no-store",
                signal: timeout.signal,
            });
            text = await response.text();
        } catch {
            // Nothing tells whether the request had left.
            throw withoutAnswer(lost, "The daemon did not answer.");
        } finally {
            clearTimeout(timer);
            signal?.removeEventListener("abort", onAbort);
        }
        this.seeTime(response);
        const document = text === "" ? {} : this.parsed(text);
        const error = errorIn(document, response.status);
        if (error) throw error;
        if (document === null) throw withoutAnswer(lost, "The daemon's answer cannot be read.", response.status);
        return document as T;
    }

    private parsed(text: string): unknown {
        try {
            return JSON.parse(text);
        } catch {
            return null;
        }
    }

    private headers(headers: Record<string, string>): Record<string, string> {
        if (this.token !== undefined) headers["Authorization"] = `Bearer ${this.token}`;
        return headers;
    }

    private addWriteHeaders(headers: Record<string, string>, hasBody: boolean, timeoutMs: number): void {
        headers["Holdfast-Csrf"] = "1";
        if (hasBody) headers["Content-Type"] = "application/json";
        // A request that was held up on its way until nobody waits for its answer must do nothing.
        if (this.daemonTime)
            headers["Holdfast-Before"] = String(
                Math.floor(this.daemonTime.at + (performance.now() - this.daemonTime.seen) + timeoutMs),
            );
    }

    private seeTime(response: Response): void {
        const at = Number(response.headers.get("Holdfast-Time") ?? NaN);
        if (Number.isFinite(at)) this.daemonTime = { at, seen: performance.now() };
    }
}

/** Waits between attempts: longer each time, up to five seconds, and never the same for two clients. */
export class Backoff {
    private attempts = 0;

    constructor(private readonly random: () => number = Math.random) {}

    next(): number {
        const longest = Math.min(5_000, 100 * 2 ** this.attempts);
        this.attempts += 1;
        return longest * (0.5 + this.random() / 2);
    }

    reset(): void {
        this.attempts = 0;
    }
}

/** Returns early, without an error, when `signal` aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const done = (): void => {
            clearTimeout(timer);
            signal?.removeEventListener("abort", done);
            resolve();
        };
        const timer = setTimeout(done, ms);
        signal?.addEventListener("abort", done);
    });
}

/**
 * Repeats a call that may be repeated until it is decided, or `patienceMs` is over. Once an attempt was of unknown
 * outcome, only a decision can end that: a later attempt that did not reach the daemon does not make it undone.
 */
export async function repeated<T>(attempt: () => Promise<T>, patienceMs: number, signal?: AbortSignal): Promise<T> {
    const end = performance.now() + patienceMs;
    const backoff = new Backoff();
    let doubt: HoldfastError | null = null;
    for (;;) {
        try {
            return await attempt();
        } catch (error) {
            if (!(error instanceof HoldfastError) || error.ending === "refused") throw error;
            if (error.ending === "unknown") doubt = error;
            const wait = Math.max(backoff.next(), error.body.retry_after_ms ?? 0);
            if (signal?.aborted || performance.now() + wait > end) throw doubt ?? error;
            await pause(wait, signal);
            if (signal?.aborted) throw doubt ?? error;
        }
    }
}
