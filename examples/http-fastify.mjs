/** Fastify: the guard as a hook, before the body is read. */

import Fastify from "fastify";
import { fenceGuard, memoryFences } from "holdfast/fencing/http";
import { writeLate } from "./support/late-writer.mjs";

// A service with several processes keeps fences in a database: postgresFences, mysqlFences.
const guard = fenceGuard({ store: memoryFences() });
let text = "";

const app = Fastify({ forceCloseConnections: true });
app.addHook("onRequest", (request, reply, done) => {
  // For a refused request the guard sends the reply and never calls `done`.
  void guard.node(request.raw, reply.raw, done);
});
app.get("/document", async () => text);
app.put("/document", async (request, reply) => {
  text = String(request.body);
  return reply.code(204).send();
});

const address = await app.listen({ host: "127.0.0.1", port: 0 });
await writeLate(`${address}/document`);
await app.close();
