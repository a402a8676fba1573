// @ts-check
/**
 * A proxy process in front of a server: delays bytes in both directions by a time that is set by
 * IPC. `node delay-proxy.mjs PORT` reports its own port.
 */

import { connect, createServer } from "node:net";

const target = Number(process.argv[2]);
let delayMs = 0;

const server = createServer({ noDelay: true }, (near) => {
  const far = connect({ port: target, host: "127.0.0.1", noDelay: true });
  for (const [from, to] of [
    [near, far],
    [far, near],
  ]) {
    from?.on("data", (chunk) => {
      if (delayMs === 0) to?.write(chunk);
      else setTimeout(() => to?.write(chunk), delayMs);
    });
    from?.on("error", () => undefined);
    from?.once("close", () => to?.destroy());
  }
});
server.listen({ port: 0, host: "127.0.0.1" }, () => {
  const address = server.address();
  process.send?.({ port: typeof address === "object" ? address?.port : 0 });
});
process.on("message", (message) => {
  delayMs = Number(message);
  process.send?.({ delayMs });
});
process.once("disconnect", () => process.exit(0));
