// What the browser keeps for its user. One that refuses to keep anything forgets it with the page.
const fallback = new Map<string, string>();

export function stored(key: string): string | null {
    try {
        return window.localStorage.getItem(key) ?? fallback.get(key) ?? null;
    } catch {
        return fallback.get(key) ?? null;
    }
}

export function store(key: string, value: string): void {
    fallback.set(key, value);
    try {
        window.localStorage.setItem(key, value);
    } catch {
        // Kept as long as the page.
    }
}
