/** Express: the guard as middleware in front of all handlers that write. */

import { once } from "node:events";
import express from "express";
import { fenceGuard, memoryFences } from "holdfast/fencing/http";
import { writeLate } from "./support/late-writer.mjs";

// A service with several processes keeps fences in a database: postgresFences, mysqlFences.
const guard = fenceGuard({ store: memoryFences() });
let text = "";

const app = express();
app.use((req, res, next) => void guard.node(req, res, next));
app.use(express.text());
app.get("/document", (_req, res) => void res.send(text));
app.put("/document", (req, res) => {
  text = req.body;
  res.sendStatus(204);
});

const server = app.listen(0, "127.0.0.1");
await once(server, "listening");
await writeLate(`http://127.0.0.1:${server.address().port}/document`);
server.close();
server.closeAllConnections();
