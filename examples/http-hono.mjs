/** Hono, and every other server that maps a Request to a Response. */

import { once } from "node:events";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { fenceGuard, memoryFences } from "holdfast/fencing/http";
import { writeLate } from "./support/late-writer.mjs";

// A service with several processes keeps fences in a database: postgresFences, mysqlFences.
const guard = fenceGuard({ store: memoryFences() });
let text = "";

const app = new Hono();
app.use((context, next) =>
  guard.handle(context.req.raw, async () => {
    await next();
    return context.res;
  }),
);
app.get("/document", (context) => context.text(text));
app.put("/document", async (context) => {
  text = await context.req.text();
  return context.body(null, 204);
});

const server = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 });
await once(server, "listening");
await writeLate(`http://127.0.0.1:${server.address().port}/document`);
server.close();
server.closeAllConnections();
