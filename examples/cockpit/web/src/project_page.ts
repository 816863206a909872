import { pause } from "../../../../clients/js/src/calls";
import type { Client } from "../../../../clients/js/src/client";
import type { Browser } from "../../../../clients/js/src/browser";
import { EditSession } from "../../../../clients/js/src/edit_session";
import type { EditView } from "../../../../clients/js/src/edit_view";
import { HoldfastError } from "../../../../clients/js/src/errors";
import type { Hold } from "../../../../clients/js/src/hold";
import type { SharedFeed } from "../../../../clients/js/src/shared_feed";
import { h } from "../../../../web/src/base/dom";
import { printable } from "../../../../web/src/base/text";
import { Access } from "./access";
import { ActivityPanel } from "./activity_panel";
import { api, locks, type Dashboard, type Project, type Proof, type Session } from "./api";
import { showCannotEdit } from "./cannot_edit";
import { DraftsPanel, type Offer } from "./drafts_panel";
import { EditorPanel } from "./editor_panel";
import { LockPanel } from "./lock_panel";
import { isLost, newsIn } from "./news";
import type { Notices } from "./notices";
import { ProjectDrafts } from "./project_drafts";
import { PropagationPanel } from "./propagation_panel";

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
    private readonly drafts: ProjectDrafts;
    private readonly edit: EditSession;
    private readonly access: Access;
    private readonly editor: EditorPanel;
    private readonly lock: LockPanel;
    private readonly propagation: PropagationPanel;
    private readonly offered: DraftsPanel;
    private readonly activity: ActivityPanel;
    private saved: Dashboard;
    private before: EditView | null = null;
    private wantsNews = false;
    private hasWarned = false;

    constructor(
        private readonly around: Surroundings,
        private readonly project: Project,
        private dashboard: Dashboard,
    ) {
        const { session, client, feed, browser, tab, notices, whenUnreachable } = around;
        this.saved = dashboard;
        const nameOf = (id: string): string => this.nameOf(id);
        this.drafts = new ProjectDrafts(browser.storage, tab, session.user ?? "", project.id, () => this.show());
        this.editor = new EditorPanel(nameOf, {
            edit: () => void this.begin(),
            stop: () => void this.stop(),
            save: () => void this.save(),
            typed: () => this.typed(),
            askForAccess: () => this.access.ask(),
            takeFromOwnTab: () => void this.begin(() => this.edit.takeFromOwnTab()),
            takeOverStale: () => void this.begin(() => this.edit.takeOverStale()),
            tellWhenFree: () => this.tellWhenFree(),
            resume: () => void this.begin(),
            dismiss: () => this.edit.dismiss(),
        });
        this.lock = new LockPanel(nameOf, session.may_approve, session.may_edit, {
            release: () => void this.stop(),
            override: () => this.access.ask(),
            answer: (question, verdict) => this.access.answer(question, verdict),
        });
        this.propagation = new PropagationPanel(
            project.id,
            session.may_edit,
            () => this.dashboard.id,
            notices,
            this.ended.signal,
        );
        this.offered = new DraftsPanel((offer) => this.useDraft(offer));
        this.activity = new ActivityPanel(project.id, nameOf);
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
        const stopWatching = browser.page?.onChange((change) => change === "left" && this.drafts.flush());
        this.ended.signal.addEventListener("abort", () => stopWatching?.());
        this.access = new Access(
            this.edit,
            client,
            locks.edit(project.id),
            nameOf,
            notices,
            () => void this.begin(),
        );
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
        this.drafts.flush();
        await this.edit.close();
    }

    /** Another dashboard of the project, in this tab: while editing, the lock goes with it. */
    async switchTo(dashboard: Dashboard): Promise<void> {
        this.dashboard = this.saved = dashboard;
        this.drafts.seen([]);
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

    private get isDirty(): boolean {
        return this.editor.text !== this.saved.text;
    }

    /** Under a new lease, before anything is typed: the server refuses older ones, and says what is saved. */
    private async prepare(hold: Hold): Promise<void> {
        const typed = this.drafts.own(this.dashboard.id);
        const read = await api.beginEditing(this.project.id, this.dashboard.id, this.proof(hold));
        this.saved = read;
        if (read.drafts) this.drafts.seen(read.drafts);
        // What was typed before goes on only where nothing newer was saved; otherwise both are shown.
        const goesOn = typed !== null && typed.base === String(read.version);
        this.editor.showText(read.name, goesOn ? typed.text : read.text, read.version);
    }

    private proof(hold: Hold): Proof {
        return { headers: hold.headers, lockId: hold.lockId };
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
            override: () => this.access.ask(),
            editHere: () => void this.begin(() => this.edit.takeFromOwnTab()),
        });
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
        const { drafts, dashboard, editor } = this;
        if (!this.isDirty) drafts.forget(dashboard.id);
        else if (!drafts.typed(dashboard.id, editor.text, this.saved.version) && !this.hasWarned) {
            this.hasWarned = true;
            this.around.notices.say("This browser has no room for your draft: the server keeps it, so save often.");
        }
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
            const { version } = await api.save(
                this.project.id,
                this.dashboard.id,
                { text, base, tab: this.around.tab },
                this.proof(hold),
            );
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
        const isUnknown = error.ending === "unknown";
        const what = isUnknown ? "Nobody knows whether it was saved." : `Not saved: ${printable(error.message)}.`;
        const next = error.ending === "refused" ? "." : ": try again.";
        this.editor.showFailure(`${what} Your text is kept as a draft${next}`);
        if (error.ending === "refused") await this.edit.lease?.renew().catch(() => undefined);
        void this.readDrafts();
    }

    /** So that others can see it, too: whoever edits next is offered it. */
    private async keepOnServer(): Promise<void> {
        if (this.isDirty) await this.drafts.keepForAll(this.dashboard.id, this.editor.text, this.saved.version);
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

    private readDrafts(): Promise<void> {
        const { id } = this.dashboard;
        return this.drafts.read(id, () => this.dashboard.id === id);
    }

    /** The lock, or what is done with it, is another than before. */
    private changed(view: EditView): void {
        const { before } = this;
        this.before = view;
        const { notices } = this.around;
        for (const news of newsIn(before, view, this.dashboard.name)) notices.say(news);
        if (isLost(before, view)) void this.editingLost();
        if (view.mode === "editing" && before?.mode !== "editing") this.editor.showFailure(null);
        if (this.wantsNews && view.obstacle === null && view.mode === "viewing") {
            this.wantsNews = false;
            notices.say("The project is free: you can edit it now.");
        }
        if (view.lock?.seq !== before?.lock?.seq) void this.activity.read();
        if (before?.obstacle?.kind === "propagating" && view.obstacle?.kind !== "propagating") void this.propagated();
        this.propagation?.lockSeen(view.obstacle?.kind === "propagating");
        this.show();
    }

    private async editingLost(): Promise<void> {
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
        const offers = this.drafts.offers(this.dashboard.id, this.saved, this.editor.text);
        this.offered.show(offers, this.saved, view.mayType);
    }
}
