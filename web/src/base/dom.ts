import { pieces, printable } from "./text";

export type Child = Node | string | number | null | undefined | false;
type Listeners = { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };

export interface Props {
    class?: string;
    on?: Listeners;
    attrs?: Record<string, string | number | boolean | null | undefined>;
}

function apply(element: Element, props: Props, children: Child[]): void {
    if (props.class) element.setAttribute("class", props.class);
    for (const [name, value] of Object.entries(props.attrs ?? {}))
        if (value !== null && value !== undefined && value !== false)
            element.setAttribute(name, value === true ? "" : String(value));
    for (const [name, listener] of Object.entries(props.on ?? {}))
        element.addEventListener(name, listener as EventListener);
    append(element, children);
}

export function append(element: Element, children: Child[]): void {
    for (const child of children)
        if (child !== null && child !== undefined && child !== false)
            element.append(child instanceof Node ? child : String(child));
}

/** An element. Strings among the children become text, never markup. */
export function h<K extends keyof HTMLElementTagNameMap>(
    tag: K,
    props: Props = {},
    ...children: Child[]
): HTMLElementTagNameMap[K] {
    const element = document.createElement(tag);
    apply(element, props, children);
    return element;
}

export function svg(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    apply(element, props, children);
    return element;
}

/** A text that somebody else wrote. */
export function untrusted(text: string, className = ""): HTMLElement {
    const element = h("bdi", { class: `untrusted ${className}`.trim(), attrs: { title: printable(text) } });
    for (const piece of pieces(text))
        element.append(piece.isEscape ? h("span", { class: "escape" }, piece.text) : piece.text);
    return element;
}

export function replace(element: Element, ...children: Child[]): void {
    element.replaceChildren();
    append(element, children);
}

/** Sets the text of an element if it is another one. */
export function setText(element: Element, text: string): void {
    if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element: Element, name: string, value: string | null): void {
    if (value === null) element.removeAttribute(name);
    else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

export function button(
    label: Child,
    onClick: () => void,
    className = "",
    attrs: Props["attrs"] = {},
): HTMLButtonElement {
    return h("button", { class: className, attrs: { type: "button", ...attrs }, on: { click: onClick } }, label);
}

/** Shapes from a 24 x 24 grid, drawn with strokes. */
const shapes: Record<string, string> = {
    lock: "M7 11V8a5 5 0 0 1 10 0v3M5.5 11h13v9h-13z",
    inbox: "M4 13l3-8h10l3 8v6H4zM4 13h5l1.5 3h3L15 13h5",
    store:
        "M5 6c0-1.7 3.1-3 7-3s7 1.3 7 3-3.1 3-7 3-7-1.3-7-3zM5 6v12c0 1.7 3.1 3 7 3s7-1.3 7-3V6" +
        "M5 12c0 1.7 3.1 3 7 3s7-1.3 7-3",
    search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.500L20 20",
    back: "M14 6l-6 6 6 6",
    sun:
        "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v2M12 19v2M3 12h2M19 12h2" +
        "M5.6 5.6L7 7M17 17l1.4 1.4M5.6 18.4L7 17M17 7l1.4-1.4",
    moon: "M19 14.500A8 8 0 0 1 9.5 5a8 8 0 1 0 9.5 9.500z",
    auto: "M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16zM12 4v16",
    check: "M5 12.500l4.5 4.500L19 7.5",
    cross: "M6 6l12 12M18 6L6 18",
    out: "M14 4h6v16h-6M4 12h10M10.5 8L14.5 12l-4 4",
};

export function icon(name: string): SVGElement {
    return svg(
        "svg",
        { class: "icon", attrs: { viewBox: "0 0 24 24", "aria-hidden": "true" } },
        svg("path", { attrs: { d: shapes[name] ?? "" } }),
    );
}
