import { HoldfastError } from "../../clients/js/src/errors";
import { daemon } from "./model/daemon";
import type { Session, StoreDocument } from "../../clients/js/src/documents";
import { button, h, icon, replace, setAttribute, setText, untrusted } from "./base/dom";
import { parse, type Route } from "./base/router";
import { store, stored } from "./base/stored";
import { printable } from "./base/text";
import { clockTime } from "./base/time";
import { LiveLocks } from "./model/live";
import type { Context, Page } from "./views/context";
import { Dialog } from "./views/dialog";
import { LockPage } from "./views/lock_page";
import { LocksPage } from "./views/locks_page";
import { loading, notice } from "./views/parts";
import { openRequests, RequestsPage } from "./views/requests_page";
import { signInPage } from "./views/sign_in";
import { StorePage } from "./views/store_page";
import { themeButton } from "./views/theme";

const nobody: Session = { user: null, role: "viewer", prefixes: [], auth: "open" };
const announcementTime = 6_000;

/** The frame around the pages: navigation, connection, announcements. */
class Console {
    private session = nobody;
    private page: Page | null = null;
    private isPainting = false;
    private wasLive = false;
    private readonly live = new LiveLocks({
        changed: () => this.paintSoon(),
        event: (event) => this.page?.event?.(event),
        signedOut: () => this.signIn(),
    });
    private readonly main = h("main", { attrs: { id: "main", tabindex: -1 } });
    private readonly nav = h("nav", { attrs: { "aria-label": "Pages" } });
    private readonly requests = h("span", { class: "count", attrs: { hidden: true } });
    private readonly linkText = h("span", {});
    private readonly link = h(
        "span",
        { class: "link" },
        h("span", { class: "dot", attrs: { "aria-hidden": "true" } }),
        this.linkText,
    );
    private readonly grade = h("a", { class: "grade-badge", attrs: { href: "#/store", hidden: true } });
    private readonly account = h("div", { class: "account" });
    private readonly banner = h("div", { class: "banner", attrs: { hidden: true, role: "status" } });
    private readonly said = h("div", { class: "toast", attrs: { role: "status", "aria-live": "polite" } });
    private saidTimer: number | undefined;

    start(): void {
        const skip = h(
            "a",
            {
                class: "skip",
                attrs: { href: "#main" },
                on: {
                    click: (event) => {
                        event.preventDefault();
                        this.main.focus();
                    },
                },
            },
            "To the content",
        );
        this.nav.append(
            this.tab("#/", "lock", "Locks"),
            this.tab("#/requests", "inbox", "Requests", this.requests),
            this.tab("#/store", "store", "Store"),
        );
        document.body.replaceChildren(
            skip,
            h(
                "header",
                {},
                h(
                    "a",
                    { class: "brand", attrs: { href: "#/", "aria-label": "Holdfast" } },
                    h("img", { attrs: { src: "/icon.svg", alt: "", width: 24, height: 24 } }),
                    h("span", {}, "Holdfast"),
                ),
                this.nav,
                h("div", { class: "header-end" }, this.link, this.grade, this.account, themeButton()),
            ),
            this.banner,
            this.main,
            this.said,
        );
        window.addEventListener("hashchange", () => this.open());
        window.addEventListener("keydown", (event) => this.key(event));
        window.setInterval(() => this.paintSoon(), 1000);
        document.addEventListener("visibilitychange", () => void this.checkSession());
        void this.begin();
    }

    /** Somebody else may have signed in in another tab: what is done here would be done in that one's name. */
    private async checkSession(): Promise<void> {
        if (document.hidden || this.nav.hidden) return;
        const known = this.session;
        try {
            const now = await daemon.get<Session>("/v1/session");
            if (this.session === known && JSON.stringify(now) !== JSON.stringify(known)) void this.begin();
        } catch {
            // The list of locks is read as well, and tells what is wrong.
        }
    }

    private async begin(): Promise<void> {
        replace(this.main, h("div", { class: "page" }, loading(6)));
        try {
            this.session = await daemon.get<Session>("/v1/session");
        } catch (error) {
            if (error instanceof HoldfastError && error.isSignedOut) this.signIn();
            else this.unreachable(error);
            return;
        }
        this.nav.hidden = false;
        this.link.hidden = false;
        this.showAccount();
        this.live.start();
        this.open();
        void this.showGrade();
    }

    private unreachable(error: unknown): void {
        const text = error instanceof HoldfastError ? error.message : "The answer of the daemon cannot be used.";
        replace(
            this.main,
            h(
                "div",
                { class: "page page-center" },
                notice(
                    "error",
                    "The daemon cannot be reached",
                    h("p", {}, untrusted(text)),
                    button("Try again", () => void this.begin()),
                ),
            ),
        );
    }

    private signIn(): void {
        this.live.stop();
        this.page?.close?.();
        this.page = null;
        this.session = nobody;
        this.nav.hidden = true;
        this.grade.hidden = true;
        this.banner.hidden = true;
        replace(this.account);
        this.link.hidden = true;
        document.title = "Sign in · Holdfast";
        for (const dialog of document.querySelectorAll("dialog")) dialog.close();
        replace(
            this.main,
            signInPage(() => void this.begin()),
        );
        this.main.querySelector("input")?.focus();
    }

    private open(): void {
        if (this.nav.hidden) return;
        const route = parse(window.location.hash);
        this.page?.close?.();
        const isFirst = this.page === null;
        this.page = this.pageOf(route);
        replace(this.main, this.page.element);
        for (const tab of this.nav.querySelectorAll("a")) {
            const isHere =
                tab.dataset["page"] ===
                (route.page === "lock" ? "#/" : `#/${route.page === "locks" ? "" : route.page}`);
            setAttribute(tab, "aria-current", isHere ? "page" : null);
        }
        window.scrollTo(0, 0);
        if (!isFirst) this.main.focus({ preventScroll: true });
        this.paint();
    }

    private pageOf(route: Route): Page {
        const context: Context = {
            live: this.live,
            session: this.session,
            me: () => this.session.user ?? stored("holdfast.me") ?? "",
            setMe: (name) => store("holdfast.me", name),
            announce: (text) => this.announce(text),
        };
        switch (route.page) {
            case "locks":
                return new LocksPage(context, route.view);
            case "lock":
                return new LockPage(context, route.name);
            case "requests":
                return new RequestsPage(context);
            case "store":
                return new StorePage(context);
        }
    }

    private paintSoon(): void {
        if (this.isPainting) return;
        this.isPainting = true;
        window.requestAnimationFrame(() => {
            this.isPainting = false;
            this.paint();
        });
    }

    private paint(): void {
        if (this.nav.hidden) return;
        this.page?.update();
        this.showLink();
        const open = openRequests(this.live.locks.values(), this.live.clock.now()).length;
        setText(this.requests, String(open));
        this.requests.hidden = open === 0;
        const title = `${this.page ? `${printable(this.page.title)} · ` : ""}Holdfast`;
        const counted = open > 0 ? `(${open}) ${title}` : title;
        if (document.title !== counted) document.title = counted;
    }

    private showLink(): void {
        const { link } = this.live;
        setAttribute(this.link, "data-state", link.state);
        setText(this.linkText, { loading: "Connecting", live: "Live", offline: "Offline" }[link.state]);
        if (link.state === "live" && !this.wasLive) {
            this.wasLive = true;
            if (!this.banner.hidden) {
                this.announce("Connected again");
                this.page?.reconnected?.();
                void this.showGrade();
            }
            this.banner.hidden = true;
        }
        if (link.state !== "offline") return;
        this.wasLive = false;
        const seen =
            link.since === null ? "Nothing is known yet." : `What you see is how it was at ${clockTime(link.since)}.`;
        const text = `${link.why} ${seen} Trying again…`;
        if (this.banner.textContent !== text) replace(this.banner, untrusted(text));
        this.banner.hidden = false;
    }

    private async showGrade(): Promise<void> {
        try {
            const { grade } = await daemon.get<StoreDocument>("/v1/store");
            replace(this.grade, `Grade ${grade}`);
            this.grade.className = `grade-badge grade-${/^[ABC]$/.test(grade) ? grade : ""}`;
            this.grade.hidden = false;
        } catch {
            this.grade.hidden = true;
        }
    }

    private showAccount(): void {
        const { user, auth, role } = this.session;
        replace(
            this.account,
            user !== null && untrusted(user, "user"),
            h("span", { class: "role" }, role),
            auth === "cookie" &&
                h(
                    "button",
                    {
                        class: "plain icon-button",
                        attrs: { type: "button", "aria-label": "Sign out", title: "Sign out" },
                        on: {
                            click: () =>
                                void daemon
                                    .delete("/v1/session")
                                    .catch(() => {})
                                    .then(() => this.signIn()),
                        },
                    },
                    icon("out"),
                ),
        );
    }

    private tab(address: string, shape: string, label: string, more?: HTMLElement): HTMLElement {
        return h("a", { attrs: { href: address, "data-page": address } }, icon(shape), h("span", {}, label), more);
    }

    private announce(text: string): void {
        replace(this.said, h("span", {}, printable(text)));
        window.clearTimeout(this.saidTimer);
        this.saidTimer = window.setTimeout(() => replace(this.said), announcementTime);
    }

    private key(event: KeyboardEvent): void {
        const target = event.target as HTMLElement | null;
        if (event.altKey || event.ctrlKey || event.metaKey || target?.closest("input, textarea, select, dialog"))
            return;
        if (event.key === "/" && this.page instanceof LocksPage) {
            event.preventDefault();
            this.page.focusSearch();
        } else if (event.key === "?") {
            this.help();
        }
    }

    private help(): void {
        const keys: Array<[string, string]> = [
            ["/", "Search"],
            ["↓ ↑", "From lock to lock"],
            ["Enter", "Open the lock"],
            ["x", "Select the lock"],
            ["?", "This list"],
        ];
        new Dialog({
            title: "Keys",
            cancelLabel: "Close",
            body: [
                h(
                    "dl",
                    { class: "keys" },
                    ...keys.flatMap(([key, what]) => [
                        h("dt", {}, ...key.split(" ").map((each) => h("kbd", {}, each))),
                        h("dd", {}, what),
                    ]),
                ),
            ],
        }).show();
    }
}

new Console().start();
