// The sample's own server. Locks are the daemon's: clients/js speaks to it, through the same origin.
import type { Lock } from "../../../../clients/js/src/documents";
import { errorIn, withoutAnswer } from "../../../../clients/js/src/errors";

export interface User {
    name: string;
    may_edit: boolean;
    may_approve: boolean;
}

export interface Session {
    user: string | null;
    may_edit: boolean;
    may_approve: boolean;
    users: User[];
    stale_after_ms: number;
    renew_interval_ms: number;
}

export interface DashboardName {
    id: string;
    name: string;
    version: number;
}

export interface Project {
    id: string;
    name: string;
    dashboards: DashboardName[];
}

export interface Dashboard {
    id: string;
    name: string;
    text: string;
    version: number;
    saved_by: string | null;
    saved_at: string | null;
    drafts?: ServerDraft[];
}

export interface ServerDraft {
    id: string | number;
    user: string;
    is_mine: boolean;
    text: string;
    base_version: number;
    kept_at: string;
}

export interface Propagation {
    state: "idle" | "running" | "done" | "failed" | "elsewhere";
    progress: number;
    by: string | null;
    error: { message: string } | null;
}

export interface AuditEntry {
    dashboard: string | null;
    user: string | null;
    type: string;
    acquired_at: string;
    released_at: string | null;
    ended_by: string | null;
    token: number;
}

interface Sending {
    method?: "GET" | "POST" | "PUT" | "DELETE";
    body?: unknown;
    headers?: Record<string, string>;
    /** Sent also when the page is closed right after, unless it is too long for that. */
    keepalive?: boolean;
}

const timeoutMs = 15_000;
/** What a browser sends for a page that is gone: 64 KiB for all of its requests together. */
const mostKeptAlive = 50_000;

let signedIn = "";
let whenSignedOut = (): void => {};

/**
 * From here on requests are made for this user, and for nobody who signs in later in another tab. `signedOut` is called
 * when the server answers that this browser is signed in as nobody, or as somebody else.
 */
export function actAs(user: string, signedOut: () => void): void {
    signedIn = user;
    whenSignedOut = signedOut;
}

/** `fetch` for the user of this page. */
export async function fetchAsUser(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
    const headers = signedIn === "" ? init.headers : { ...(init.headers as object), "Cockpit-User": signedIn };
    const response = await fetch(input, { ...init, ...(headers ? { headers } : {}) });
    if (response.status === 401 && signedIn !== "") whenSignedOut();
    return response;
}

/** Each call is sent once, and ends as those of the daemon do: see `HoldfastError.ending`. */
async function call<T>(path: string, sending: Sending = {}): Promise<T> {
    const { method = "GET", body, headers = {}, keepalive = false } = sending;
    const lost = method === "GET" ? "unreached" : "unknown";
    let response: Response;
    let text: string;
    try {
        const sent = body === undefined ? null : JSON.stringify(body);
        response = await fetchAsUser(path, {
            method,
            keepalive: keepalive && new Blob([sent ?? ""]).size < mostKeptAlive,
            headers: sent === null ? headers : { ...headers, "Content-Type": "application/json" },
            body: sent,
            cache: "no-store",
            signal: AbortSignal.timeout(timeoutMs),
        });
        text = await response.text();
    } catch {
        throw withoutAnswer(lost, "The server did not answer.");
    }
    let document: unknown = null;
    try {
        document = text === "" ? {} : JSON.parse(text);
    } catch {
        // Said below.
    }
    const error = errorIn(document, response.status);
    if (error) throw error;
    if (document === null) throw withoutAnswer(lost, "The server's answer cannot be read.", response.status);
    return document as T;
}

const dashboardPath = (project: string, dashboard: string): string =>
    `/api/projects/${encodeURIComponent(project)}/dashboards/${encodeURIComponent(dashboard)}`;
const projectPath = (project: string): string => `/api/projects/${encodeURIComponent(project)}`;

/** What stands in an editor, the version that it began from, and the tab it is in. */
export interface Typed {
    text: string;
    base: number;
    tab: string;
}

export interface Proof {
    headers: Record<string, string>;
    lockId: string;
}

export const api = {
    session: () => call<Session>("/api/session"),
    /** Who is signed in now, in whichever tab. */
    whoIs: async () => ((await (await fetch("/api/session", { cache: "no-store" })).json()) as Session).user,
    signIn: (user: string) => call<unknown>("/api/session", { method: "POST", body: { user } }),
    signOut: () => call<unknown>("/api/session", { method: "DELETE" }),
    projects: async () => (await call<{ projects: Project[] }>("/api/projects")).projects,
    dashboard: (project: string, dashboard: string) => call<Dashboard>(dashboardPath(project, dashboard)),
    beginEditing: (project: string, dashboard: string, { headers, lockId }: Proof) =>
        call<Dashboard>(`${projectPath(project)}/editing`, {
            method: "POST",
            body: { dashboard, lock_id: lockId },
            headers,
        }),
    save: (project: string, dashboard: string, { text, base, tab }: Typed, { headers, lockId }: Proof) =>
        call<{ version: number; saved_at: string }>(dashboardPath(project, dashboard), {
            method: "PUT",
            body: { text, base_version: base, tab, lock_id: lockId },
            headers,
        }),
    /** `isPrivate`: nobody else is offered it. */
    keepDraft: (project: string, dashboard: string, { text, base, tab }: Typed, isPrivate: boolean) =>
        call<unknown>(`${dashboardPath(project, dashboard)}/draft`, {
            method: "PUT",
            body: { text, base_version: base, tab, private: isPrivate },
            keepalive: true,
        }),
    drafts: async (project: string, dashboard: string) =>
        (await call<{ drafts: ServerDraft[] }>(`${dashboardPath(project, dashboard)}/drafts`)).drafts,
    removeDraft: (project: string, dashboard: string, id: string | number) =>
        call<unknown>(`${dashboardPath(project, dashboard)}/drafts/${encodeURIComponent(id)}`, { method: "DELETE" }),
    propagate: (project: string, dashboard: string) =>
        call<{ job: string }>(`${projectPath(project)}/propagation`, { method: "POST", body: { dashboard } }),
    propagation: (project: string) => call<Propagation>(`${projectPath(project)}/propagation`),
    audit: async (project: string) =>
        (await call<{ entries: AuditEntry[] }>(`/api/audit?project=${encodeURIComponent(project)}`)).entries,
};

export const locks = {
    edit: (project: string): string => `project/${project}/edit`,
    propagation: (project: string): string => `project/${project}/propagation`,
};

/** `roadmap#1f2e…` -> `roadmap`: a screen is a dashboard in a tab. */
export function dashboardOf(lock: Lock | null): string {
    const holder = lock?.holder ?? "";
    const at = holder.lastIndexOf("#");
    return at < 0 ? holder : holder.slice(0, at);
}
