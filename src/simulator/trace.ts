/** One event in a world, as the timelines show it. */
export interface TraceEvent {
  readonly atMs: number;
  /** Name of a client or node, or "world". */
  readonly lane: string;
  readonly kind: string;
  readonly text: string;
}

/** `hashed`: keeps a hash of all events. `kept`: keeps the hash and the events. `off`: nothing. */
export type TraceMode = "off" | "hashed" | "kept";

/** Running hash over all events: two runs are the same if their hashes are equal. */
export class Trace {
  /** True if events are recorded. If false, callers need not format the texts of events. */
  readonly isOn: boolean;
  readonly #kept: TraceEvent[] | undefined;
  #high = 0x811c9dc5 | 0;
  #low = 0x01000193 | 0;
  #count = 0;

  constructor(mode: TraceMode) {
    this.isOn = mode !== "off";
    this.#kept = mode === "kept" ? [] : undefined;
  }

  get count(): number {
    return this.#count;
  }

  get events(): readonly TraceEvent[] {
    return this.#kept ?? [];
  }

  get hash(): string {
    return hex(this.#high) + hex(this.#low);
  }

  add(atMs: number, lane: string, kind: string, text: string): void {
    if (!this.isOn) return;
    this.#count += 1;
    const micros = Math.round(atMs * 1_000);
    this.#mix(micros | 0);
    this.#mix(Math.floor(micros / 4_294_967_296));
    this.#mixText(lane);
    this.#mixText(kind);
    this.#mixText(text);
    this.#kept?.push({ atMs, lane, kind, text });
  }

  #mixText(text: string): void {
    for (let index = 0; index < text.length; index += 1) this.#mix(text.charCodeAt(index));
    this.#mix(text.length);
  }

  #mix(value: number): void {
    this.#high = Math.imul(this.#high ^ value, 0x01000193);
    this.#low = Math.imul(this.#low ^ (value + (this.#high >>> 16)), 0x5bd1e995);
  }
}

function hex(value: number): string {
  return (value >>> 0).toString(16).padStart(8, "0");
}
