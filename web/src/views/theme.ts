import { h, icon, replace } from "../base/dom";
import { store, stored } from "../base/stored";

const choices = ["auto", "light", "dark"] as const;
type Theme = (typeof choices)[number];
const shapes = { auto: "auto", light: "sun", dark: "moon" };

function chosen(): Theme {
    const kept = stored("holdfast.theme");
    return choices.find((choice) => choice === kept) ?? "auto";
}

/** Goes from the system's colours to light ones, to dark ones. */
export function themeButton(): HTMLButtonElement {
    const element = h("button", { class: "plain icon-button", attrs: { type: "button" } });
    const show = (): void => {
        const theme = chosen();
        document.documentElement.dataset["theme"] = theme;
        element.setAttribute("aria-label", `Colours: ${theme}`);
        element.title = `Colours: ${theme}`;
        replace(element, icon(shapes[theme]));
    };
    element.addEventListener("click", () => {
        store("holdfast.theme", choices[(choices.indexOf(chosen()) + 1) % choices.length] ?? "auto");
        show();
    });
    show();
    return element;
}
