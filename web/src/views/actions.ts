import { HoldfastError, errorIn } from "../../../clients/js/src/errors";
import { daemon } from "../model/daemon";
import type { Lock } from "../../../clients/js/src/documents";
import { h, untrusted } from "../base/dom";
import { plural } from "../base/text";
import { instant, moment, words } from "../base/time";
import { holderWords, openQuestion } from "../model/locks";
import type { Context } from "./context";
import { Dialog, field } from "./dialog";

/** What became of one lock. */
interface Outcome {
    lock: Lock;
    /** Null: done. */
    error: HoldfastError | null;
}

interface BatchReplies {
    replies?: Array<Record<string, unknown>>;
}

const nobodyKnows = new HoldfastError("unknown", 0, { code: "", message: "The daemon did not say what became of it." });

function asHoldfastError(error: unknown): HoldfastError {
    return error instanceof HoldfastError ? error : nobodyKnows;
}

const largestBatch = 500;
/** A reason has 1,024 bytes at most, and a character up to three. */
const mostCharacters = 340;

/** One request for each lock, in as few calls as possible; an answer for each, whatever happens. */
async function send(op: string, path: string, locks: Lock[], requestOf: (lock: Lock) => object): Promise<Outcome[]> {
    const [only] = locks;
    if (only && locks.length === 1) {
        try {
            await daemon.post(path, { name: only.name, ...requestOf(only) });
            return [{ lock: only, error: null }];
        } catch (error) {
            return [{ lock: only, error: asHoldfastError(error) }];
        }
    }
    const outcomes: Outcome[] = [];
    for (let i = 0; i < locks.length; i += largestBatch)
        outcomes.push(
            ...(await sendBatch(locks.slice(i, i + largestBatch), (lock) => ({
                op,
                name: lock.name,
                ...requestOf(lock),
            }))),
        );
    return outcomes;
}

async function sendBatch(locks: Lock[], requestOf: (lock: Lock) => object): Promise<Outcome[]> {
    try {
        const requests = locks.map(requestOf);
        const { replies = [] } = await daemon.post<BatchReplies>("/v1/batch", { requests });
        return locks.map((lock, i) => {
            const reply = replies[i];
            const status = Number(reply?.["status"]);
            return { lock, error: reply ? errorIn(reply, status || 200) : nobodyKnows };
        });
    } catch (error) {
        return locks.map((lock) => ({ lock, error: asHoldfastError(error) }));
    }
}

const endingWords = { refused: "Refused", unreached: "Not reached, nothing was changed", unknown: "Nobody knows" };

function outcomeList(outcomes: Outcome[], done: string): HTMLElement {
    return h(
        "ul",
        { class: "outcomes" },
        ...outcomes.map(({ lock, error }) =>
            h(
                "li",
                { class: error ? `outcome-${error.ending}` : "outcome-done" },
                untrusted(lock.name, "strong"),
                h("span", { class: "outcome" }, error ? endingWords[error.ending] : done),
                error &&
                    h(
                        "p",
                        { class: "hint" },
                        untrusted(error.message),
                        error.ending === "unknown" && " It may have been carried out or not: look at the lock.",
                    ),
            ),
        ),
    );
}

/** Shows what came out unless all went well, which is only announced. */
function conclude(dialog: Dialog, context: Context, outcomes: Outcome[], done: string): void {
    void context.live.read();
    const failed = outcomes.filter((outcome) => outcome.error).length;
    const first = outcomes[0];
    if (failed === 0 && first) {
        dialog.close();
        context.announce(
            outcomes.length === 1 ? `${done}: ${first.lock.name}` : `${done}: ${plural(outcomes.length, "lock")}`,
        );
        return;
    }
    const text = `${plural(failed, "lock")} of ${outcomes.length} could not be changed for certain.`;
    dialog.finish(h("p", { attrs: { role: "alert" } }, text), outcomeList(outcomes, done));
}

function named(lock: Lock, now: number): HTMLElement {
    const since = instant(lock.acquired_at);
    return h(
        "li",
        {},
        untrusted(lock.name, "strong"),
        h(
            "span",
            { class: "line" },
            "held by ",
            lock.user !== null && untrusted(lock.user),
            lock.user !== null && " · ",
            untrusted(holderWords(lock.holder)),
            ` · token ${lock.token}`,
            since !== null && ` · since ${moment(since, now)}`,
        ),
        lock.operation !== null && h("span", { class: "faint line" }, untrusted(lock.operation)),
    );
}

function reasonInput(): HTMLTextAreaElement {
    return h("textarea", { attrs: { rows: 2, maxlength: mostCharacters, autofocus: true, name: "reason" } });
}

/** Where the daemon knows who calls, it writes that in the place of this. */
const actor = (context: Context): string => context.me() || "console";

const given = (input: HTMLInputElement | HTMLTextAreaElement): string | undefined =>
    input.value.trim() === "" ? undefined : input.value.trim();

/** Takes locks away from their holders. Nothing happens to a lease that is not the one that is shown. */
export function breakLocks(context: Context, locks: Lock[], after: () => void = () => {}): void {
    const now = context.live.clock.now();
    const reason = reasonInput();
    const [only] = locks;
    const dialog: Dialog = new Dialog({
        title: only && locks.length === 1 ? "Break this lock?" : `Break ${plural(locks.length, "lock")}?`,
        body: [
            h(
                "p",
                {},
                "The holder loses the lock at once, whether it has finished or not. Its command may go on for a " +
                    "moment. The audit log keeps your reason.",
            ),
            h("ul", { class: "named" }, ...locks.map((lock) => named(lock, now))),
            field("Reason", reason, "Everybody who reads the history will see it."),
        ],
        confirm: {
            label: locks.length === 1 ? "Break the lock" : `Break ${plural(locks.length, "lock")}`,
            isDanger: true,
            run: async () => {
                const outcomes = await send("unlock", "/v1/unlock", locks, (lock) => ({
                    lock_id: lock.lock_id,
                    actor: actor(context),
                    reason: given(reason),
                }));
                conclude(dialog, context, outcomes, "Broken");
                after();
            },
        },
    });
    dialog.show();
}

/** Gives a lock back in its holder's name, for whoever has the lease. */
export function releaseLock(context: Context, lock: Lock): void {
    const lease = h("input", {
        attrs: {
            type: "password",
            autocomplete: "off",
            spellcheck: "false",
            required: true,
            autofocus: true,
            name: "lease",
        },
    });
    const dialog: Dialog = new Dialog({
        title: "Release this lock?",
        body: [
            h(
                "p",
                {},
                "Giving a lock back needs its lease, the secret that its holder was given. Without it, a lock can be " +
                    "broken or asked for.",
            ),
            h("ul", { class: "named" }, named(lock, context.live.clock.now())),
            field(
                "Lease",
                lease,
                "What holdfast acquire printed as HOLDFAST_LEASE. It is sent to the daemon and not kept.",
            ),
        ],
        confirm: {
            label: "Release the lock",
            isDanger: false,
            run: async () => {
                const outcomes = await send("release", "/v1/release", [lock], () => ({ lease: lease.value.trim() }));
                lease.value = "";
                conclude(dialog, context, outcomes, "Released");
            },
        },
    });
    dialog.show();
}

/** Answers questions for locks: the lock goes to the asker, or stays where it is. */
export function answer(context: Context, kind: "approve" | "deny", locks: Lock[], after: () => void = () => {}): void {
    const now = context.live.clock.now();
    const reason = reasonInput();
    const asked = locks.flatMap((lock) => {
        const question = openQuestion(lock, now);
        return question ? [{ lock, question }] : [];
    });
    const isOne = asked.length === 1;
    const verb = kind === "approve" ? "Approve" : "Deny";
    const dialog: Dialog = new Dialog({
        title: isOne ? `${verb} this request?` : `${verb} ${plural(asked.length, "request")}?`,
        body: [
            h(
                "p",
                {},
                kind === "approve"
                    ? "The lock goes to the asker with a new token, and its holder loses it at once."
                    : "The lock stays with its holder, and the asker is told.",
            ),
            h(
                "ul",
                { class: "named" },
                ...asked.map(({ lock, question }) =>
                    h(
                        "li",
                        {},
                        untrusted(lock.name, "strong"),
                        h(
                            "span",
                            { class: "line" },
                            "asked for by ",
                            untrusted(question.user ?? holderWords(question.holder)),
                            ` for ${words(question.ttl_ms)}`,
                        ),
                        question.reason !== null &&
                            h("span", { class: "line faint" }, "“", untrusted(question.reason), "”"),
                        h(
                            "span",
                            { class: "line faint" },
                            "held by ",
                            untrusted(lock.user ?? holderWords(lock.holder)),
                            ` · token ${lock.token}`,
                        ),
                    ),
                ),
            ),
            field("Reason", reason),
        ],
        confirm: {
            label: isOne ? verb : `${verb} ${plural(asked.length, "request")}`,
            isDanger: kind === "approve",
            run: async () => {
                const questionOf = new Map(asked.map(({ lock, question }) => [lock.name, question.lock_id]));
                const outcomes = await send(
                    `override_${kind}`,
                    `/v1/override/${kind}`,
                    asked.map(({ lock }) => lock),
                    (lock) => ({ lock_id: questionOf.get(lock.name), actor: actor(context), reason: given(reason) }),
                );
                conclude(dialog, context, outcomes, kind === "approve" ? "Approved" : "Denied");
                after();
            },
        },
    });
    dialog.show();
}
