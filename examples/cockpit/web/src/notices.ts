import { h, setText } from "../../../../web/src/base/dom";

const shownMs = 8_000;

/** What happens without the user's doing is said in one polite live region, and takes the focus from nobody. */
export class Notices {
    readonly element = h("div", { class: "notices", attrs: { role: "status", "aria-live": "polite" } });
    private timer: ReturnType<typeof setTimeout> | undefined;

    say(text: string): void {
        // It fades from sight, and stays where a screen reader finds it.
        const notice = h("p", { class: "notice" }, text);
        setText(this.element, "");
        this.element.append(notice);
        clearTimeout(this.timer);
        this.timer = setTimeout(() => notice.classList.add("is-old"), shownMs);
    }
}
