import type { Session } from "../../../clients/js/src/documents";

const roles = ["nobody", "viewer", "holder", "admin"] as const;
export type Role = (typeof roles)[number];

/** An area covers the lock of its name and those below it; with a slash at its end, only those below. */
function covers(area: string, name: string): boolean {
    if (area === "") return true;
    if (!name.startsWith(area)) return false;
    return area.endsWith("/") ? name.length > area.length : name.length === area.length || name[area.length] === "/";
}

/** What the session may do with a lock. Only for what is shown: the daemon decides. */
export function roleFor(session: Session, name: string): Role {
    let highest: Role = "nobody";
    for (const grant of session.grants ?? [session.role]) {
        const colon = grant.indexOf(":");
        const role = roles.find((each) => each === (colon < 0 ? grant : grant.slice(0, colon))) ?? "nobody";
        const isCovered = covers(colon < 0 ? "" : grant.slice(colon + 1), name);
        if (isCovered && roles.indexOf(role) > roles.indexOf(highest)) highest = role;
    }
    return highest;
}

export function mayAdminister(session: Session, name: string): boolean {
    return roleFor(session, name) === "admin";
}
