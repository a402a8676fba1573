/** What a client process is told on its command line, and what it tells on its standard output. */

export interface ClientPlan {
  /** The package as it was built, with its manifest. */
  readonly packageFolder: string;
  readonly addresses: Addresses;
  /** Locked, and the name of what is written everywhere. */
  readonly resource: string;
  readonly value: string;
  readonly ttlMs: number;
  /** Of the deployment: the same for all its clients. */
  readonly maxTtlMs: number;
  readonly writes: "guarded" | "plain";
  readonly role: Role;
}

/**
 * `prompt` waits for the lock, writes and keeps the lease until told to end. The others take a
 * short lease that they do not get to use: they stand still between two statements, until they are
 * told to go on. Then `blind` writes without a look at its lease, and `careful` looks first.
 */
export type Role =
  | { readonly kind: "prompt" }
  | { readonly kind: "blind" }
  | { readonly kind: "careful"; readonly look: Look };

export type Look = "assertHeld" | "signal.aborted" | "signal.throwIfAborted" | "remainingMs";

export interface Addresses {
  readonly lockPorts: readonly number[];
  readonly postgres: Address;
  readonly mariadb: Address;
  readonly registerPort: number;
  readonly url: string;
}

export interface Address {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
}

/** Fences are texts: JSON numbers are doubles. */
export type Message =
  | { readonly kind: "holding"; readonly fence: string }
  | { readonly kind: "wrote"; readonly outcomes: Outcomes; readonly events: Events }
  | { readonly kind: "looked"; readonly saw: Saw; readonly using: Failure; readonly events: Events }
  | { readonly kind: "proved"; readonly held: boolean };

/** By the name of the place that was written to. */
export type Outcomes = Readonly<Record<string, Outcome>>;

export type Outcome =
  | { readonly kind: "written" }
  | {
      readonly kind: "refused";
      readonly error: string;
      readonly resources: readonly string[];
      readonly fence: string;
      readonly seen: string;
    };

/** What the first look at the lease came to. */
export type Saw = { readonly threw: Failure } | { readonly value: boolean | number };

export interface Failure {
  readonly error: string;
  readonly reason: string;
  /** What the work returned, if its lease was lost in the meantime. */
  readonly result?: unknown;
}

/** What the client's manager emitted. */
export interface Events {
  readonly fencedOff: readonly FencedOffEvent[];
  readonly lost: readonly { readonly fence: string; readonly reason: string }[];
}

export interface FencedOffEvent {
  readonly guard: string;
  readonly resource: string;
  readonly fence: string;
  readonly seen: string;
}
