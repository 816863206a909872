import type { SortKey, View } from "../model/locks";

/** Which page is shown; all of it is in the address, after `#`. */
export type Route =
    { page: "locks"; view: View } | { page: "lock"; name: string } | { page: "requests" } | { page: "store" };

const sortKeys: readonly SortKey[] = ["name", "holder", "token", "age", "expires", "waiters"];

export const everything: View = { search: "", prefix: "", mine: false, sort: "name", descending: false };

/** A part of an address, also one that nobody has encoded. */
export function decoded(text: string): string {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}

export function parse(hash: string): Route {
    const [path = "", query = ""] = hash.replace(/^#/, "").split("?", 2);
    if (path.startsWith("/lock/")) return { page: "lock", name: decoded(path.slice("/lock/".length)) };
    if (path === "/requests") return { page: "requests" };
    if (path === "/store") return { page: "store" };
    const params = new URLSearchParams(query);
    const sort = sortKeys.find((key) => key === params.get("sort")) ?? everything.sort;
    return {
        page: "locks",
        view: {
            search: params.get("search") ?? "",
            prefix: params.get("prefix") ?? "",
            mine: params.has("mine"),
            sort,
            descending: params.has("descending"),
        },
    };
}

export function lockAddress(name: string): string {
    return `#/lock/${encodeURIComponent(name)}`;
}

export function viewAddress(view: View): string {
    const params = new URLSearchParams();
    if (view.search !== "") params.set("search", view.search);
    if (view.prefix !== "") params.set("prefix", view.prefix);
    if (view.mine) params.set("mine", "");
    if (view.sort !== everything.sort) params.set("sort", view.sort);
    if (view.descending) params.set("descending", "");
    const query = params.toString();
    return query === "" ? "#/" : `#/?${query}`;
}
