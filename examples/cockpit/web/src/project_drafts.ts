import type { KeyValues } from "../../../../clients/js/src/browser";
import { Drafts, type Draft } from "../../../../clients/js/src/drafts";
import { api, type Dashboard, type ServerDraft, type Typed } from "./api";
import type { Offer } from "./drafts_panel";

/** How often what is typed goes to the server, where the browser has no room for it. */
const serverEveryMs = 3_000;

/**
 * What was typed in a project and not saved: in this browser, and on the server, where whoever edits next is offered
 * what others had typed when they lost the lock.
 */
export class ProjectDrafts {
    private onServer: ServerDraft[] = [];
    private readonly inBrowser: Drafts;
    private keptAt = -Infinity;
    /** What is about to go to the server. */
    private pending: (Typed & { dashboard: string }) | null = null;
    private timer: ReturnType<typeof setTimeout> | undefined;

    constructor(
        storage: KeyValues,
        private readonly tab: string,
        user: string,
        private readonly project: string,
        private readonly changed: () => void,
    ) {
        this.inBrowser = new Drafts(storage, tab, user);
    }

    /** What was typed in this tab. */
    own(dashboard: string): Draft | null {
        return this.inBrowser.of(this.document(dashboard)).find(({ tab }) => tab === this.tab) ?? null;
    }

    /** False if it would not outlive the page: then the server keeps it, a moment later. */
    typed(dashboard: string, text: string, base: number): boolean {
        if (this.pending?.dashboard !== dashboard) this.flush();
        this.pending = null;
        clearTimeout(this.timer);
        if (this.inBrowser.keep(this.document(dashboard), text, String(base))) return true;
        this.pending = { dashboard, text, base, tab: this.tab };
        const wait = Math.max(0, this.keptAt + serverEveryMs - performance.now());
        this.timer = setTimeout(() => this.flush(), wait);
        return false;
    }

    /** Sends what waits to be sent: the page may be gone in a moment. */
    flush(): void {
        const { pending } = this;
        if (pending) void this.send(pending.dashboard, pending, true);
    }

    forget(dashboard: string): void {
        this.pending = null;
        clearTimeout(this.timer);
        this.inBrowser.remove(this.document(dashboard));
    }

    /** So that others see it, too: whoever edits next is offered it. */
    keepForAll(dashboard: string, text: string, base: number): Promise<void> {
        return this.send(dashboard, { text, base, tab: this.tab }, false);
    }

    seen(drafts: ServerDraft[]): void {
        this.onServer = drafts;
    }

    async read(dashboard: string, isStillShown: () => boolean): Promise<void> {
        try {
            const drafts = await api.drafts(this.project, dashboard);
            if (isStillShown()) this.onServer = drafts;
        } catch {
            // Those of this browser are shown.
        }
        this.changed();
    }

    /** Those that say something else than what was saved, and what stands in the editor. */
    offers(dashboard: string, saved: Dashboard, typed: string): Offer[] {
        const own = this.inBrowser.of(this.document(dashboard)).map((draft) => this.offerOf(dashboard, draft));
        const others = this.onServer
            .filter(({ is_mine, text }) => !is_mine || !own.some((each) => each.text === text))
            .map((draft) => this.offerOfServer(dashboard, draft));
        return [...own, ...others].filter(({ text }) => text !== saved.text && text !== typed);
    }

    private offerOf(dashboard: string, { text, base, tab, keptAt }: Draft): Offer {
        const remove = async (): Promise<void> => {
            this.inBrowser.remove(this.document(dashboard), tab);
            this.changed();
        };
        const who = tab === this.tab ? "You" : "You, in another tab,";
        return { key: tab, who, text, base: Number(base), keptAt, remove };
    }

    private offerOfServer(dashboard: string, draft: ServerDraft): Offer {
        const { id, user, is_mine, text, base_version: base, kept_at: keptAt } = draft;
        const remove = async (): Promise<void> => {
            await api.removeDraft(this.project, dashboard, id).catch(() => undefined);
            await this.read(dashboard, () => true);
        };
        return { key: `server ${id}`, who: is_mine ? "You" : user, text, base, keptAt, remove };
    }

    private async send(dashboard: string, typed: Typed, isPrivate: boolean): Promise<void> {
        this.pending = null;
        clearTimeout(this.timer);
        this.keptAt = performance.now();
        try {
            await api.keepDraft(this.project, dashboard, typed, isPrivate);
        } catch {
            // It is in this browser all the same, or is sent again with the next input.
        }
    }

    private document(dashboard: string): string {
        return documentOf(this.project, dashboard);
    }
}

const documentOf = (project: string, dashboard: string): string => `${project}/${dashboard}`;

/**
 * Whoever uses the browser next has no business with the drafts of a user who signs out: they go to the server, where
 * that user, and nobody else, finds them again. Those that it does not take stay here, and are returned.
 */
export async function moveToServer(drafts: Drafts): Promise<Draft[]> {
    const left: Draft[] = [];
    for (const draft of drafts.all()) {
        const [project = "", dashboard = ""] = draft.document.split("/");
        try {
            await api.keepDraft(project, dashboard, { ...draft, base: Number(draft.base) }, true);
            drafts.remove(draft.document, draft.tab);
        } catch {
            left.push(draft);
        }
    }
    return left;
}
