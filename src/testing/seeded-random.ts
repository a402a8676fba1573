import type { Random } from "../core/ports.ts";

const base64url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const baseLength = 22;

/**
 * Generator that returns the same numbers for the same seed on every machine. The algorithm is
 * sfc32 by Chris Doty-Humphrey.
 */
export class SeededRandom implements Random {
  #a: number;
  #b: number;
  #c: number;
  #count = 1;

  constructor(seed: number) {
    this.#a = seed | 0;
    this.#b = Math.trunc(seed / 2 ** 32) | 0;
    this.#c = 0x9e3779b9 | 0;
    // Drops the first numbers, because similar seeds start with similar numbers.
    for (let round = 0; round < 15; round += 1) this.#next();
  }

  fraction(): number {
    return this.#next() / 2 ** 32;
  }

  uniqueBase(): string {
    const words = Array.from({ length: 4 }, () => this.#next().toString(16).padStart(8, "0"));
    let bits = BigInt(`0x${words.join("")}`);
    let base = "";
    while (base.length < baseLength) {
      base += base64url.charAt(Number(bits & 63n));
      bits >>= 6n;
    }
    return base;
  }

  /** Returns 32 random bits as a number that is not negative. */
  #next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#count) | 0;
    this.#count = (this.#count + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }
}
