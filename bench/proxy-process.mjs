// @ts-check
/**
 * A proxy process in front of a server: delays bytes in both directions by a time that is set by
 * IPC. `node proxy-process.mjs PORT` reports its own port.
 */

import { TcpProxy } from "../tools/network/tcp-proxy.mjs";

const proxy = await TcpProxy.open(Number(process.argv[2]));
process.on("message", (message) => {
  const delayMs = Number(message);
  proxy.setDelay(delayMs);
  process.send?.({ delayMs });
});
process.once("disconnect", () => process.exit(0));
process.send?.({ port: proxy.port });
