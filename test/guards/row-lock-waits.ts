import { setTimeout as sleep } from "node:timers/promises";
import type mysql from "mysql2/promise";

/**
 * Waits until a session of the server waits for a row lock. The server refreshes this table only if
 * it was not read for 100 ms: without the pause before the first look, a look could return a wait
 * that an earlier call saw.
 */
export async function untilSessionWaits(pool: mysql.Pool): Promise<void> {
  for (let look = 1; look <= 100; look += 1) {
    await sleep(150);
    const [waiting] = await pool.query<mysql.RowDataPacket[]>(
      "SELECT trx_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
    );
    if (waiting.length > 0) return;
  }
  throw new Error("no session came to wait for a row lock");
}
