import type { ErrorBody } from "./types";

/**
 * How a call ended that did not succeed. `refused`: the daemon decided. `unreached`: nothing was changed. `unknown`:
 * the request may have been carried out.
 */
export type Ending = "refused" | "unreached" | "unknown";

export class CallError extends Error {
    constructor(
        readonly ending: Ending,
        readonly status: number,
        readonly body: ErrorBody,
    ) {
        super(body.message);
    }

    get isSignedOut(): boolean {
        return this.status === 401;
    }
}

const patience = 20_000;

function isErrorBody(value: unknown): value is ErrorBody {
    const body = value as ErrorBody | null;
    return (
        typeof body === "object" && body !== null && typeof body.code === "string" && typeof body.message === "string"
    );
}

/** What an answer with this status says about a request that may change something. */
export function endingOf(status: number, body: ErrorBody | null): Ending {
    if (body?.code === "E_OUTCOME_UNKNOWN" || status === 504) return "unknown";
    if (body?.code === "E_STORE_UNAVAILABLE") return "unreached";
    // Any other answer of a gateway says nothing of what the daemon did.
    if (status >= 500 && !body) return "unknown";
    return "refused";
}

/** The error in a document such as `{"error":{…}}`, or null. */
export function errorIn(document: unknown, status: number): CallError | null {
    const inner = (document as { error?: unknown } | null)?.error;
    const body = isErrorBody(inner) ? inner : null;
    if (status < 400 && !body) return null;
    return new CallError(
        endingOf(status, body),
        status,
        body ?? { code: "", message: `The daemon answered with status ${status}.` },
    );
}

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const headers: Record<string, string> = { Accept: "application/json" };
    if (method !== "GET") headers["Holdfast-Csrf"] = "1";
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let response: Response;
    let text: string;
    try {
        response = await fetch(path, {
            method,
            headers,
            body: body === undefined ? null : JSON.stringify(body),
            credentials: "same-origin",
            cache: "no-store",
            signal: AbortSignal.timeout(patience),
        });
        text = await response.text();
    } catch {
        // A browser does not say whether it had sent the request.
        throw new CallError(method === "GET" ? "unreached" : "unknown", 0, {
            code: "",
            message: "The daemon did not answer.",
        });
    }
    let document: unknown = null;
    try {
        document = text === "" ? {} : JSON.parse(text);
    } catch {
        if (response.ok)
            throw new CallError(method === "GET" ? "unreached" : "unknown", response.status, {
                code: "",
                message: "The daemon's answer cannot be read.",
            });
    }
    const error = errorIn(document, response.status);
    if (error) throw error;
    return document as T;
}

function query(params: Record<string, string | number | undefined>): string {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(params)) if (value !== undefined) search.set(name, String(value));
    const text = search.toString();
    return text === "" ? "" : `?${text}`;
}

export const http = {
    get: <T>(path: string, params: Record<string, string | number | undefined> = {}): Promise<T> =>
        call<T>("GET", path + query(params)),
    post: <T>(path: string, body: unknown): Promise<T> => call<T>("POST", path, body),
    delete: <T>(path: string): Promise<T> => call<T>("DELETE", path),
};
