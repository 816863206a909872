import { pause } from "../../../../clients/js/src/calls";
import type { Client } from "../../../../clients/js/src/client";
import type { Browser } from "../../../../clients/js/src/browser";
import { Drafts } from "../../../../clients/js/src/drafts";
import { EditSession } from "../../../../clients/js/src/edit_session";
import type { EditView } from "../../../../clients/js/src/edit_view";
import { HoldfastError } from "../../../../clients/js/src/errors";
import type { Hold } from "../../../../clients/js/src/hold";
import type { SharedFeed } from "../../../../clients/js/src/shared_feed";
import { h } from "../../../../web/src/base/dom";
import { ActivityPanel } from "./activity_panel";
import { api, locks, type Dashboard, type Project, type Proof, type ServerDraft, type Session } from "./api";
import { showCannotEdit } from "./cannot_edit";
import { ask, askWhy } from "./dialogs";
import { DraftsPanel, type Offer } from "./drafts_panel";
import { EditorPanel } from "./editor_panel";
import { LockPanel } from "./lock_panel";
import type { Notices } from "./notices";
import { PropagationPanel } from "./propagation_panel";
import { editorOf } from "./words";

export interface Surroundings {
    client: Client;
    feed: SharedFeed;
    browser: Browser;
    tab: string;
    session: Session;
    notices: Notices;
    /** `?unreachable=read_only` in the address: the other policy. */
    whenUnreachable: "warn" | "read_only";
    go: (path: string) => void;
}

const lookEveryMs = 5_000;

/** A project: one of its dashboards, who edits, what was not saved, and what happened. */
export class ProjectPage {
    readonly element: HTMLElement;
    private readonly ended = new AbortController();
    private readonly drafts: Drafts;
    private readonly edit: EditSession;
    private readonly editor: EditorPanel;
    private readonly lock: LockPanel;
    private readonly propagation: PropagationPanel;
    private readonly offered: DraftsPanel;
    private readonly activity: ActivityPanel;
    private saved: Dashboard;
    private onServer: ServerDraft[] = [];
    private before: EditView | null = null;
    private wantsNews = false;

    constructor(
        private readonly around: Surroundings,
        private readonly project: Project,
        private dashboard: Dashboard,
    ) {
        const { session, client, feed, browser, tab, notices, whenUnreachable } = around;
        this.saved = dashboard;
        this.drafts = new Drafts(browser.storage, tab, session.user ?? "");
        this.editor = new EditorPanel((id) => this.nameOf(id), {
            edit: () => void this.begin(),
            stop: () => void this.stop(),
            save: () => void this.save(),
            typed: () => this.typed(),
            askForAccess: () => this.askForAccess(),
            takeFromOwnTab: () => void this.begin(() => this.edit.takeFromOwnTab()),
            takeOverStale: () => void this.begin(() => this.edit.takeOverStale()),
            tellWhenFree: () => this.tellWhenFree(),
            resume: () => void this.begin(),
            dismiss: () => this.edit.dismiss(),
        });
        this.lock = new LockPanel((id) => this.nameOf(id), session.may_approve, session.may_edit, {
            release: () => void this.stop(),
            override: () => this.askForAccess(),
            answer: (question, verdict) => this.answer(question, verdict),
        });
        this.propagation = new PropagationPanel(
            project.id,
            session.may_edit,
            () => this.dashboard.id,
            notices,
            this.ended.signal,
        );
        this.offered = new DraftsPanel((offer) => this.useDraft(offer));
        this.activity = new ActivityPanel(project.id, (id) => this.nameOf(id));
        this.edit = new EditSession({
            client,
            feed,
            browser,
            tab,
            name: locks.edit(project.id),
            holder: this.holder(),
            user: session.user ?? "",
            excludedBy: locks.propagation(project.id),
            mayEdit: session.may_edit,
            staleAfterMs: session.stale_after_ms,
            renewEveryMs: session.renew_interval_ms,
            whenUnreachable,
            prepare: (hold) => this.prepare(hold),
            beforeYield: () => this.keepOnServer(),
            onChange: (view) => this.changed(view),
        });
        this.element = h(
            "div",
            { class: "project" },
            h("div", { class: "stack-wide" }, this.editor.element, this.offered.element),
            h("aside", { class: "side" }, this.lock.element, this.propagation.element, this.activity.element),
        );
        this.editor.showText(dashboard.name, dashboard.text, dashboard.version);
        this.changed(this.edit.view);
        void this.follow();
    }

    async close(): Promise<void> {
        this.ended.abort();
        await this.edit.close();
    }

    /** Another dashboard of the project, in this tab: while editing, the lock goes with it. */
    async switchTo(dashboard: Dashboard): Promise<void> {
        this.dashboard = this.saved = dashboard;
        this.onServer = [];
        this.editor.showText(dashboard.name, dashboard.text, dashboard.version);
        await this.edit.switchTo(this.holder());
        this.changed(this.edit.view);
        void this.readDrafts();
    }

    private holder(): string {
        return `${this.dashboard.id}#${this.around.tab}`;
    }

    private nameOf(id: string): string {
        return this.project.dashboards.find((each) => each.id === id)?.name ?? id;
    }

    private get document(): string {
        return `${this.project.id}/${this.dashboard.id}`;
    }

    private get isDirty(): boolean {
        return this.editor.text !== this.saved.text;
    }

    /** Under a new lease, before anything is typed: the server refuses older ones, and says what is saved. */
    private async prepare(hold: Hold): Promise<void> {
        const typed = this.ownDraft();
        const read = await api.beginEditing(this.project.id, this.dashboard.id, this.proof(hold));
        this.saved = read;
        if (read.drafts) this.onServer = read.drafts;
        // What was typed before goes on only where nothing newer was saved; otherwise both are shown.
        const goesOn = typed !== null && typed.base === String(read.version);
        this.editor.showText(read.name, goesOn ? typed.text : read.text, read.version);
    }

    private proof(hold: Hold): Proof {
        return { headers: hold.headers, lockId: hold.lockId };
    }

    private ownDraft(): { text: string; base: string } | null {
        return this.drafts.of(this.document).find(({ tab }) => tab === this.around.tab) ?? null;
    }

    private async begin(attempt = () => this.edit.edit()): Promise<void> {
        await attempt();
        const { failure, mayType } = this.edit.view;
        if (failure) this.cannotEdit(failure);
        // The button that was pressed is gone.
        else if (mayType) this.editor.focusIfLost();
    }

    private cannotEdit(error: HoldfastError): void {
        const { go, notices } = this.around;
        const { obstacle } = this.edit.view;
        showCannotEdit(error, notices, {
            nameOf: (id) => this.nameOf(id),
            isOwn: obstacle?.kind === "held" && obstacle.isOwn,
            propagation: locks.propagation(this.project.id),
            view: (id) => go(`/p/${encodeURIComponent(this.project.id)}/${encodeURIComponent(id)}`),
            override: () => this.askForAccess(),
            editHere: () => void this.begin(() => this.edit.takeFromOwnTab()),
        });
    }

    private askForAccess(): void {
        const { obstacle } = this.edit.view;
        if (obstacle?.kind === "not_permitted") {
            const text = "Your account only looks. Somebody who manages accounts can change that.";
            ask("Cannot edit", [h("p", {}, text)], [{ label: "Done", isFirst: true }]);
            return;
        }
        if (obstacle?.kind !== "held") return void this.begin();
        const body = h(
            "p",
            {},
            editorOf(obstacle.lock, (id) => this.nameOf(id)),
        );
        body.append(" is asked to let you edit. Whoever may approve it can answer, too.");
        askWhy("Request edit access", [body], "Request", (reason) => void this.request(reason));
    }

    private async request(reason: string): Promise<void> {
        await this.edit.requestOverride(reason, 600_000);
        const { failure } = this.edit.view;
        this.around.notices.say(failure ? `Not requested: ${failure.message}` : "Requested. You will be told.");
    }

    private answer(question: string, verdict: "approve" | "deny"): void {
        const run = async (reason: string): Promise<void> => {
            if (this.edit.lease) return this.edit.answer(question, verdict, reason);
            try {
                await this.around.client.answerOverride(locks.edit(this.project.id), question, { verdict, reason });
            } catch (error) {
                if (!(error instanceof HoldfastError)) throw error;
                this.around.notices.say(`Not answered: ${error.message}`);
            }
        };
        if (verdict === "deny") askWhy("Deny the request?", [], "Deny", (reason) => void run(reason));
        else void run("");
    }

    private tellWhenFree(): void {
        this.wantsNews = true;
        this.around.notices.say("You will be told when it can be edited.");
    }

    private async stop(): Promise<void> {
        if (this.isDirty) await this.keepOnServer();
        await this.edit.stop();
        this.editor.showText(this.saved.name, this.saved.text, this.saved.version);
        void this.readDrafts();
    }

    private typed(): void {
        const { drafts, document } = this;
        if (!this.isDirty) drafts.remove(document);
        else if (!drafts.keep(document, this.editor.text, String(this.saved.version)))
            this.around.notices.say("This browser has no room for your draft: save often.");
        this.show();
    }

    private async save(): Promise<void> {
        const hold = this.edit.lease;
        if (!hold || !this.isDirty) return;
        const { text } = this.editor;
        const base = this.saved.version;
        this.editor.isSaving = true;
        this.show();
        try {
            const { version } = await api.save(this.project.id, this.dashboard.id, text, base, this.proof(hold));
            this.saved = { ...this.saved, text, version };
            this.wasSaved();
        } catch (error) {
            if (!(error instanceof HoldfastError)) throw error;
            await this.notSaved(error, text);
        }
        this.editor.isSaving = false;
        this.show();
    }

    private wasSaved(): void {
        this.typed();
        this.editor.showVersion(this.saved.version);
        this.editor.showFailure(null);
        this.around.notices.say(`Saved as version ${this.saved.version}.`);
        void this.readDrafts();
    }

    /** Refused, or nobody knows: the text stays where it is, and is kept. */
    private async notSaved(error: HoldfastError, text: string): Promise<void> {
        const now = await api.dashboard(this.project.id, this.dashboard.id).catch(() => null);
        if (now?.text === text) {
            // It was saved by an attempt whose answer was lost.
            this.saved = now;
            return this.wasSaved();
        }
        if (now && now.version !== this.saved.version) this.takeNewer(now);
        const wasRefused = error.ending === "refused";
        this.editor.showFailure(
            wasRefused
                ? `Not saved: ${error.message}. Your text is kept as a draft.`
                : "Nobody knows whether it was saved. Your text is kept as a draft: try again.",
        );
        if (wasRefused) await this.edit.lease?.renew().catch(() => undefined);
        void this.readDrafts();
    }

    /** So that others can see it, too: whoever edits next is offered it. */
    private async keepOnServer(): Promise<void> {
        if (!this.isDirty) return;
        try {
            await api.keepDraft(this.project.id, this.dashboard.id, this.editor.text, this.saved.version);
        } catch {
            // It is in this browser all the same.
        }
    }

    private useDraft(offer: Offer): void {
        this.editor.replaceText(offer.text);
        this.typed();
        this.editor.focus();
    }

    private async follow(): Promise<void> {
        while (!this.ended.signal.aborted) {
            if (!document.hidden) {
                const now = await api.dashboard(this.project.id, this.dashboard.id).catch(() => null);
                if (now) this.showSaved(now);
                await this.readDrafts();
            }
            await pause(lookEveryMs, this.ended.signal);
        }
    }

    private async readDrafts(): Promise<void> {
        const { id } = this.dashboard;
        try {
            const drafts = await api.drafts(this.project.id, id);
            if (this.dashboard.id === id) this.onServer = drafts;
        } catch {
            // Those of this browser are shown.
        }
        this.show();
    }

    private offers(): Offer[] {
        const { project, dashboard, drafts, document } = this;
        const offers: Offer[] = [];
        for (const { text, base, tab, keptAt } of drafts.of(document)) {
            const remove = async (): Promise<void> => {
                drafts.remove(document, tab);
                this.show();
            };
            const who = tab === this.around.tab ? "You" : "You, in another tab,";
            offers.push({ key: tab, who, text, base: Number(base), keptAt, remove });
        }
        for (const { id, user, is_mine, text, base_version, kept_at } of this.onServer) {
            const remove = async (): Promise<void> => {
                await api.removeDraft(project.id, dashboard.id, id).catch(() => undefined);
                await this.readDrafts();
            };
            if (is_mine && offers.some((own) => own.text === text)) continue;
            offers.push({
                key: `server ${id}`,
                who: is_mine ? "You" : user,
                text,
                base: base_version,
                keptAt: kept_at,
                remove,
            });
        }
        return offers.filter(({ text }) => text !== this.saved.text && text !== this.editor.text);
    }

    /** The lock, or what is done with it, is another than before. */
    private changed(view: EditView): void {
        const { before } = this;
        this.before = view;
        const { notices } = this.around;
        const isLost = before?.mode === "editing" && view.loss !== null && before.loss === null;
        if (isLost) void this.editingLost(view);
        if (view.mode === "editing" && before?.mode !== "editing") {
            this.editor.showFailure(null);
            notices.say(`You are editing ${this.dashboard.name}.`);
        }
        const { request } = view;
        if (request && request.state !== before?.request?.state && request.state !== "pending")
            notices.say(
                request.state === "denied"
                    ? `Your request was denied${request.reason ? `: ${request.reason}` : "."}`
                    : "Nobody answered your request.",
            );
        if (view.question && !before?.question) notices.say("Somebody asks for edit access.");
        if (this.wantsNews && view.obstacle === null && view.mode === "viewing") {
            this.wantsNews = false;
            notices.say("The project is free: you can edit it now.");
        }
        if (view.lock?.seq !== before?.lock?.seq) void this.activity.read();
        if (before?.obstacle?.kind === "propagating" && view.obstacle?.kind !== "propagating") void this.propagated();
        this.propagation?.lockSeen(view.obstacle?.kind === "propagating");
        this.show();
    }

    private async editingLost({ loss }: EditView): Promise<void> {
        const { notices } = this.around;
        if (loss?.kind === "expired") notices.say("Your edit lock expired due to inactivity.");
        else if (loss?.kind === "taken")
            notices.say("Your edit lock was taken away. What you typed is kept as a draft.");
        else notices.say("You handed the edit lock over.");
        await this.keepOnServer();
        const now = await api.dashboard(this.project.id, this.dashboard.id).catch(() => null);
        if (now) this.showSaved(now);
        await this.readDrafts();
    }

    /** Another text may have been saved; what is being typed stays. */
    private showSaved(now: Dashboard): void {
        if (this.edit.view.mode === "viewing") this.takeNewer(now);
    }

    /** What was typed is a draft from here on, beside what was saved. */
    private takeNewer(now: Dashboard): void {
        if (this.dashboard.id !== now.id) return;
        this.saved = now;
        this.editor.showText(now.name, now.text, now.version);
    }

    /** A propagation may have changed this dashboard, too. */
    private async propagated(): Promise<void> {
        const now = await api.dashboard(this.project.id, this.dashboard.id).catch(() => null);
        if (!now || now.version === this.saved.version) return;
        if (this.isDirty) this.around.notices.say("This dashboard was changed. What you typed is kept as a draft.");
        this.takeNewer(now);
        this.show();
    }

    private show(): void {
        const { view } = this.edit;
        this.editor.show(view, this.isDirty);
        this.lock.show(view);
        this.offered.show(this.offers(), this.saved, view.mayType);
    }
}
