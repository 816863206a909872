import { thisBrowser } from "../../../../clients/js/src/browser";
import { Client } from "../../../../clients/js/src/client";
import { HoldfastError } from "../../../../clients/js/src/errors";
import { SharedFeed } from "../../../../clients/js/src/shared_feed";
import { tabIdentity } from "../../../../clients/js/src/tab";
import { append, button, h, replace, setAttribute, untrusted } from "../../../../web/src/base/dom";
import { decoded } from "../../../../web/src/base/router";
import { printable } from "../../../../web/src/base/text";
import { actAs, api, fetchAsUser, type Project, type Session } from "./api";
import { Notices } from "./notices";
import { ProjectPage, type Surroundings } from "./project_page";
import { checkSignedOut, hearSignOut, signOut } from "./sign_out";

const patienceMs = 5_000;

const notices = new Notices();
const main = h("main", { attrs: { id: "main", tabindex: -1 } });
const places = h("nav", { attrs: { "aria-label": "Dashboards" } });
const account = h("div", { class: "header-end" });

const browser = thisBrowser("cockpit");
const client = new Client({ url: "", patienceMs, fetch: fetchAsUser });
let tab = "";
let feed: SharedFeed | null = null;
let session: Session | null = null;
let projects: Project[] = [];
let page: { project: Project; view: ProjectPage } | null = null;
let shown = 0;

const pathOf = (project: string, dashboard: string): string =>
    `/p/${encodeURIComponent(project)}/${encodeURIComponent(dashboard)}`;

function link(path: string, label: string, isHere = false): HTMLElement {
    const element = h("a", { attrs: { href: path, "aria-current": isHere ? "page" : null } }, label);
    element.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        go(path);
    });
    return element;
}

function go(path: string): void {
    if (path !== location.pathname) history.pushState(null, "", path + location.search);
    void show();
}

function showAccount(): void {
    replace(account);
    if (!session?.user) return;
    const { user } = session;
    const out = (): Promise<void> => signOut({ browser, client, projects, tab, user, closePage });
    append(account, [untrusted(session.user, "user"), button("Sign out", () => void out(), "plain")]);
}

async function closePage(): Promise<void> {
    const open = page;
    page = null;
    await open?.view.close();
}

function showSignIn({ users }: Session): void {
    const choose = async (user: string): Promise<void> => {
        await api.signIn(user);
        await begin();
    };
    const what = (user: Session["users"][number]): string =>
        user.may_approve ? "edits and approves" : user.may_edit ? "edits" : "only looks";
    replace(
        main,
        h(
            "div",
            { class: "page page-center" },
            h("h1", {}, "Who are you?"),
            h(
                "ul",
                { class: "users" },
                ...users.map((user) =>
                    h(
                        "li",
                        {},
                        button(user.name, () => void choose(user.name)),
                        ` ${what(user)}`,
                    ),
                ),
            ),
        ),
    );
}

function showProjects(): void {
    const cards = projects.map(({ id, name, dashboards }) =>
        h(
            "section",
            { class: "card" },
            h("h2", {}, name),
            h("ul", {}, ...dashboards.map((each) => h("li", {}, link(pathOf(id, each.id), each.name)))),
        ),
    );
    replace(main, h("div", { class: "page" }, h("h1", {}, "Projects"), h("div", { class: "cards" }, ...cards)));
}

function showPlaces(project: Project | null, dashboard: string): void {
    const wasThere = places.contains(document.activeElement);
    replace(
        places,
        ...(project?.dashboards ?? []).map(({ id, name }) =>
            link(pathOf(project?.id ?? "", id), name, id === dashboard),
        ),
    );
    if (wasThere) places.querySelector<HTMLElement>("[aria-current=page]")?.focus();
}

function around(signedIn: Session): Surroundings {
    feed ??= new SharedFeed(client, browser);
    const isReadOnly = new URLSearchParams(location.search).get("unreachable") === "read_only";
    const whenUnreachable = isReadOnly ? "read_only" : "warn";
    return { client, feed, browser, tab, session: signedIn, notices, whenUnreachable, go };
}

async function showDashboard(signedIn: Session, project: Project, id: string): Promise<void> {
    const turn = ++shown;
    const dashboard = await api.dashboard(project.id, id);
    if (turn !== shown) return;
    document.title = `${dashboard.name} · ${project.name} · Cockpit`;
    showPlaces(project, id);
    if (page?.project.id === project.id) return page.view.switchTo(dashboard);
    await closePage();
    page = { project, view: new ProjectPage(around(signedIn), project, dashboard) };
    replace(main, h("div", { class: "page page-wide" }, page.view.element));
}

async function show(): Promise<void> {
    if (!session?.user) return;
    const match = /^\/p\/([^/]+)\/([^/]+)$/.exec(location.pathname);
    const project = projects.find(({ id }) => id === decoded(match?.[1] ?? ""));
    try {
        if (project && match) return await showDashboard(session, project, decoded(match[2] ?? ""));
    } catch (error) {
        if (!(error instanceof HoldfastError)) throw error;
        notices.say(printable(error.message));
        return;
    }
    ++shown;
    await closePage();
    showPlaces(null, "");
    showProjects();
}

async function begin(): Promise<void> {
    session = await api.session();
    showAccount();
    const { user } = session;
    if (!user) return showSignIn(session);
    actAs(user, () => void checkSignedOut(user, browser, notices));
    hearSignOut(user, browser);
    projects = await api.projects();
    await show();
}

async function start(): Promise<void> {
    const brand = link("/", "Cockpit");
    setAttribute(brand, "class", "brand");
    document.body.append(
        h("a", { class: "skip", attrs: { href: "#main" } }, "Skip to the content"),
        h("header", {}, brand, places, account),
        main,
        notices.element,
    );
    window.addEventListener("popstate", () => void show());
    tab = await tabIdentity(browser);
    for (;;) {
        try {
            return await begin();
        } catch (error) {
            if (!(error instanceof HoldfastError)) throw error;
            notices.say("The server does not answer. Trying again…");
            await new Promise((resolve) => setTimeout(resolve, 2_000));
        }
    }
}

void start();
