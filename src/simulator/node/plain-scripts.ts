import { setAll, shown } from "./lock-values.ts";
import { Queues } from "./queues.ts";
import { atOf, type PlaceAsked, type ScriptBody, type ScriptContext } from "./script-context.ts";
import { claimPlaces, firstOfOthers, locksOf, waitInQueues } from "./waiting-scripts.ts";

/** `plain-acquire.lua` */
export const plainAcquire: ScriptBody = (context) => {
  const queues = new Queues(context);
  const reply = plainAcquireIn(context, queues, undefined);
  queues.notifyHeads((lock) => context.data.textOf(lock) === undefined);
  return reply;
};

/** The verdict on one acquire; the queues are finished later. */
export function plainAcquireIn(
  context: ScriptContext,
  queues: Queues,
  place: PlaceAsked | undefined,
): string {
  const { data, keys, args } = context;
  const [owner = "", ttl = ""] = args;
  const asked = locksOf(keys);
  const { locks } = asked;
  let mine = 0;
  for (const key of locks) {
    const value = data.textOf(key);
    if (value === owner) {
      mine += 1;
    } else if (value !== undefined) {
      const rank = waitInQueues(context, queues, asked, place);
      return `H ${atOf(context)} - ${data.pttl(key)} ${rank} ${shown(value)}`;
    }
  }
  if (mine === locks.length) return "G";
  if (mine > 0) return `X PARTIAL ${mine}`;
  const leftMs = firstOfOthers(queues, asked, place);
  if (leftMs !== undefined) {
    const rank = waitInQueues(context, queues, asked, place);
    return `Q ${atOf(context)} - ${leftMs} ${rank}`;
  }
  claimPlaces(queues, asked, place);
  return setAll(data, locks, owner, Number(ttl)) ?? "G";
}

/** `plain-touch.lua` */
export const plainTouch: ScriptBody = ({ data, keys, args }) => {
  const [owner = "", ttl = ""] = args;
  for (const key of keys) {
    const value = data.get(key);
    if (value === undefined) return "N ABSENT";
    if (value !== owner) return "N OTHER";
  }
  for (const key of keys) {
    if (Number(ttl) > 0 && data.pttl(key) < Number(ttl)) data.pexpire(key, Number(ttl));
  }
  return "K";
};
