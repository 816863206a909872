import { button, h, replace, untrusted } from "../../../../web/src/base/dom";
import { instant, moment } from "../../../../web/src/base/time";

/** A draft of whoever it is, wherever it was kept. */
export interface Offer {
    key: string;
    who: string;
    text: string;
    base: number;
    keptAt: string;
    remove: () => Promise<void>;
}

/** Texts that somebody typed and nobody saved, each beside the text as it is saved now. */
export class DraftsPanel {
    readonly element = h("section", {
        class: "panel drafts",
        attrs: { "aria-labelledby": "drafts-title", hidden: true },
    });
    private readonly list = h("ul", { class: "draft-list" });
    private shown = "";

    constructor(private readonly use: (offer: Offer) => void) {
        this.element.append(h("h2", { attrs: { id: "drafts-title" } }, "Drafts that were not saved"), this.list);
    }

    show(offers: Offer[], saved: { text: string; version: number }, mayUse: boolean): void {
        // Built anew only when something changed, so that nobody's focus is lost.
        const now = JSON.stringify([offers.map(({ key, text, base }) => [key, text, base]), saved, mayUse]);
        if (now === this.shown) return;
        this.shown = now;
        this.element.hidden = offers.length === 0;
        replace(this.list, ...offers.map((offer) => this.item(offer, saved, mayUse)));
    }

    private item(offer: Offer, saved: { text: string; version: number }, mayUse: boolean): HTMLElement {
        const at = moment(instant(offer.keptAt) ?? 0, Date.now());
        const versions =
            offer.base === saved.version
                ? "Nothing was saved since."
                : `It began from version ${offer.base}; version ${saved.version} was saved since.`;
        const use = button("Use this draft", () => this.use(offer), "primary", { disabled: !mayUse });
        return h(
            "li",
            { class: "draft" },
            h("p", { class: "draft-head" }, untrusted(offer.who, "strong"), ` at ${at}. ${versions}`),
            h(
                "div",
                { class: "draft-texts" },
                this.text("Draft", offer.text),
                this.text(`Saved, version ${saved.version}`, saved.text),
            ),
            h(
                "div",
                { class: "actions" },
                use,
                !mayUse && h("span", { class: "hint" }, "Edit the dashboard to use it."),
                button("Discard", () => void offer.remove()),
            ),
        );
    }

    private text(title: string, text: string): HTMLElement {
        // A region that scrolls must be reachable by keyboard.
        const attrs = { tabindex: 0, role: "group", "aria-label": title };
        const lines = text.split("\n").flatMap((line, i) => [i > 0 && "\n", untrusted(line)]);
        return h("div", { class: "draft-text" }, h("h3", {}, title), h("pre", { attrs }, ...lines));
    }
}
