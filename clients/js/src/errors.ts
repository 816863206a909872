import type { ErrorBody, Lock } from "./documents.js";

/**
 * How a call ended that did not succeed. `refused`: the daemon decided. `unreached`: nothing was changed. `unknown`:
 * the request may have been carried out.
 */
export type Ending = "refused" | "unreached" | "unknown";

export class HoldfastError extends Error {
    override readonly name = "HoldfastError";

    constructor(
        readonly ending: Ending,
        /** Of HTTP; 0 if there was no answer. */
        readonly status: number,
        readonly body: ErrorBody,
    ) {
        super(body.message);
    }

    /** `E_LOCK_CONFLICT`; empty if whoever answered was no daemon. */
    get code(): string {
        return this.body.code;
    }

    /** The lock as it stood when the call was refused. */
    get holder(): Lock | null {
        return this.body.holder ?? null;
    }

    /** Whether it says that the lease is over. A refusal for another reason, also of a gateway, leaves it as it is. */
    get isLeaseOver(): boolean {
        return ["E_LOCK_NOT_HELD", "E_LOCK_EXPIRED", "E_LOCK_CONFLICT", "E_FENCING_MISMATCH"].includes(this.code);
    }

    get isSignedOut(): boolean {
        return this.status === 401;
    }
}

function isErrorBody(value: unknown): value is ErrorBody {
    const body = value as ErrorBody | null;
    return (
        typeof body === "object" && body !== null && typeof body.code === "string" && typeof body.message === "string"
    );
}

/** What an answer with this status says about a request that may change something. */
function endingOf(status: number, body: ErrorBody | null): Ending {
    if (body?.code === "E_OUTCOME_UNKNOWN" || status === 504) return "unknown";
    if (body?.code === "E_STORE_UNAVAILABLE") return "unreached";
    // A gateway that has too much to do has not passed it on.
    if (status === 429 && !body) return "unreached";
    // Any other answer of a gateway says nothing of what the daemon did.
    if (status >= 500 && !body) return "unknown";
    return "refused";
}

/** The error in a document such as `{"error":{…}}`, or null. */
export function errorIn(document: unknown, status: number): HoldfastError | null {
    const inner = (document as { error?: unknown } | null)?.error;
    const body = isErrorBody(inner) ? inner : null;
    if (status < 400 && !body) return null;
    return new HoldfastError(
        endingOf(status, body),
        status,
        body ?? { code: "", message: `The daemon answered with status ${status}.` },
    );
}

export function withoutAnswer(ending: Ending, message: string, status = 0): HoldfastError {
    return new HoldfastError(ending, status, { code: "", message });
}
