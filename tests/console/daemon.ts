// A daemon of its own for a test, on a SQLite store in a folder that goes with it.
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const run = promisify(execFile);

function fromEnvironment(name: string): string {
    const value = process.env[name];
    if (value === undefined) throw new Error(`${name} is not set; ctest sets it`);
    return value;
}

/** The command, and the program behind it that loads shared libraries. */
const program = fromEnvironment("HOLDFAST");
const fullProgram = fromEnvironment("HOLDFAST_FULL");

export interface Granted {
    name: string;
    lease: string;
    lock_id: string;
    token: number;
    holder: string;
}

export class Daemon {
    readonly folder = mkdtempSync(join(tmpdir(), "holdfast-console-"));
    url = "";
    private port = 0;
    private child: ChildProcess | null = null;

    /** Options of `serve` that every start gets. */
    constructor(readonly options: string[] = []) {}

    get store(): string {
        return `sqlite:${join(this.folder, "holdfast.db")}`;
    }

    /** After the first time on the same port, so that an open page finds it again. */
    async start(): Promise<void> {
        for (let attempt = this.port === 0 ? 10 : 1; ; --attempt) {
            // Below the ports that a system gives to anybody, so that nobody takes it while the daemon is away.
            const port = this.port || 20_000 + Math.floor(Math.random() * 10_000);
            if (await this.listensAt(port)) {
                this.port = port;
                return;
            }
            if (attempt === 1) throw new Error("the daemon ended before it listened");
        }
    }

    private async listensAt(port: number): Promise<boolean> {
        const child = spawn(program, ["serve", "--listen", `127.0.0.1:${port}`, ...this.options], {
            env: this.environment(),
            stdio: ["ignore", "pipe", "ignore"],
        });
        this.child = child;
        for await (const line of createInterface({ input: child.stdout })) {
            const match = /listening on (\S+)/.exec(line);
            if (!match?.[1]) continue;
            this.url = match[1].replace(/\/$/, "");
            return true;
        }
        return false;
    }

    async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
        const { child } = this;
        this.child = null;
        if (!child || child.exitCode !== null || child.signalCode !== null) return;
        const ended = new Promise((resolve) => child.once("exit", resolve));
        child.kill(signal);
        await ended;
    }

    async remove(): Promise<void> {
        await this.stop("SIGKILL");
        rmSync(this.folder, { recursive: true, force: true });
    }

    /** Runs a command on the same store, beside the daemon. */
    async command(...words: string[]): Promise<string> {
        return (await run(program, words, { env: this.environment() })).stdout;
    }

    /** The same in the past, `-90m`: for a history that took longer than a test. */
    async commandAt(moment: string, ...words: string[]): Promise<string> {
        return (await run("faketime", ["-f", moment, fullProgram, ...words], { env: this.environment() })).stdout;
    }

    async acquire(name: string, ...flags: string[]): Promise<Granted> {
        return JSON.parse(await this.command("acquire", name, "--json", "--ttl", "10m", ...flags)) as Granted;
    }

    async post<T>(path: string, body: unknown): Promise<T> {
        const response = await fetch(this.url + path, {
            method: "POST",
            headers: { "Content-Type": "application/json" },
            body: JSON.stringify(body),
        });
        if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
        return (await response.json()) as T;
    }

    private environment(): NodeJS.ProcessEnv {
        const { PATH, LANG } = process.env;
        return { PATH, LANG, HOME: this.folder, HOLDFAST_STORE: this.store };
    }
}
