/**
 * Concurrent transfers between accounts. Each transfer locks both accounts in one step: it gets
 * both locks or none, so the order does not matter and transfers cannot deadlock.
 */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createLocks } from "holdfast";
import { memory } from "holdfast/memory";

const names = ["ann", "bob", "cy", "dee"];
const opening = 1_000;
const transfers = Array.from({ length: 60 }, (_, index) => ({
  from: names[index % names.length],
  to: names[(index + 1 + (index % (names.length - 1))) % names.length],
  amount: 1 + ((index * 7) % 50),
}));

// In your project: redis(client), redlock(clients), or embedded("./locks") on one machine.
const locks = createLocks(memory(), { wait: "30s" });

const unlocked = await run(async (_transfer, move) => await move());
console.log(`without locks: ${describe(unlocked)}`);

const locked = await run(
  async ({ from, to }, move) =>
    await locks.using([`account:${from}`, `account:${to}`], { label: "transfer" }, move),
);
console.log(`with locks:    ${describe(locked)}`);

assert.notEqual(sum(unlocked), names.length * opening);
assert.equal(sum(locked), names.length * opening);
await locks.close();

/**
 * @param {(transfer: typeof transfers[number], move: () => Promise<void>) => Promise<void>} guard
 */
async function run(guard) {
  const balances = new Map(names.map((name) => [name, opening]));
  await Promise.all(
    transfers.map((transfer) => guard(transfer, async () => await move(balances, transfer))),
  );
  return balances;
}

/**
 * Reads, pauses and writes, as code in front of a database does.
 *
 * @param {Map<string, number>} balances
 * @param {typeof transfers[number]} transfer
 */
async function move(balances, { from, to, amount }) {
  const [before, after] = [balances.get(from) ?? 0, balances.get(to) ?? 0];
  await sleep(2);
  balances.set(from, before - amount);
  balances.set(to, after + amount);
}

/** @param {Map<string, number>} balances */
function sum(balances) {
  return [...balances.values()].reduce((total, balance) => total + balance, 0);
}

/** @param {Map<string, number>} balances */
function describe(balances) {
  const each = [...balances].map(([name, balance]) => `${name} ${balance}`).join(", ");
  return `${each}; in all ${sum(balances)}, should be ${names.length * opening}`;
}
