import type { RedisConnection } from "../../../clients/contract.ts";

/**
 * Returns the names of a store's nodes for messages: the addresses of their servers. A node whose
 * client shows no address is `redis`, or `node-2` if there are several. If two nodes have the same
 * address, their numbers follow the address. `place` is the prefix for the nodes of a group.
 */
export function nodeNames(
  connections: readonly Pick<RedisConnection, "address">[],
  place: string,
): readonly string[] {
  const addresses = connections.map(({ address }) => address);
  return addresses.map((address, index) => {
    const number = `node-${index + 1}`;
    if (address === undefined) {
      return connections.length === 1 && place === "" ? "redis" : place + number;
    }
    const isShared = addresses.indexOf(address) !== addresses.lastIndexOf(address);
    return place + (isShared ? `${address} (${number})` : address);
  });
}
