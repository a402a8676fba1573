/** The arguments of a client process, and the messages on its standard output. */

export interface ClientPlan {
  /** Folder of the built package with its manifest. */
  readonly packageFolder: string;
  readonly addresses: Addresses;
  /** Resource to lock. Also the name under which the client writes everywhere. */
  readonly resource: string;
  readonly value: string;
  readonly ttlMs: number;
  /** maxTtl of the deployment, the same for all its clients. */
  readonly maxTtlMs: number;
  readonly writes: "guarded" | "plain";
  readonly role: Role;
}

/**
 * `prompt` waits for the lock, writes, and keeps the lease until a line on stdin. The others
 * acquire a short lease and block between two statements until a byte arrives on stdin. Then
 * `blind` writes without checking its lease, and `careful` checks it first.
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

/** Fences are texts, because JSON numbers are doubles. */
export type Message =
  | { readonly kind: "holding"; readonly fence: string }
  | { readonly kind: "wrote"; readonly outcomes: Outcomes; readonly events: Events }
  | { readonly kind: "looked"; readonly saw: Saw; readonly using: Failure; readonly events: Events }
  | { readonly kind: "proved"; readonly held: boolean };

/** Outcomes by the target of the write. */
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

/** Result of the first look at the lease. */
export type Saw = { readonly threw: Failure } | { readonly value: boolean | number };

export interface Failure {
  readonly error: string;
  readonly reason: string;
  /** Result of the work, if its lease was lost meanwhile. */
  readonly result?: unknown;
}

/** Events that the client's manager emitted. */
export interface Events {
  readonly rejections: readonly RejectionEvent[];
  readonly lost: readonly { readonly fence: string; readonly reason: string }[];
}

export interface RejectionEvent {
  readonly guard: string;
  readonly resource: string;
  readonly fence: string;
  readonly seen: string;
}
