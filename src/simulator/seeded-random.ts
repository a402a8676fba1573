/**
 * Random stream that depends only on its name. Each part of a world has its own stream, so removing
 * one fault does not change the values of the others.
 */
export class SeededRandom {
  readonly #name: string;
  #a: number;
  #b: number;
  #c: number;
  #count = 1;

  constructor(name: string) {
    this.#name = name;
    this.#a = hashOf(name, 0x9e3779b9);
    this.#b = hashOf(name, 0x243f6a88);
    this.#c = hashOf(name, 0xb7e15162);
    for (let round = 0; round < 12; round += 1) this.fraction();
  }

  fork(name: string): SeededRandom {
    return new SeededRandom(`${this.#name}/${name}`);
  }

  /** Returns a uniform number in [0, 1), by the sfc32 generator of Chris Doty-Humphrey. */
  fraction(): number {
    const sum = (this.#a + this.#b + this.#count) | 0;
    this.#count = (this.#count + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return (sum >>> 0) / 4_294_967_296;
  }

  between(min: number, max: number): number {
    return min + this.fraction() * (max - min);
  }

  /** Returns a whole number from `min` to `max`, both included. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.fraction() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[Math.floor(this.fraction() * items.length)];
    if (item === undefined) throw new RangeError("nothing to pick from");
    return item;
  }

  /** Returns a value of the exponential distribution with this mean. */
  exponential(mean: number): number {
    return -Math.log(1 - this.fraction()) * mean;
  }

  hex(length: number): string {
    let text = "";
    while (text.length < length) text += Math.floor(this.fraction() * 16).toString(16);
    return text;
  }
}

function hashOf(text: string, start: number): number {
  let hash = start | 0;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x5bd1e995);
    hash ^= hash >>> 15;
  }
  return hash | 0;
}
