export { redis, redlock } from "./redlock.ts";
export type { DriftOptions, RedisStoreOptions } from "./options.ts";
export type { RedisConnection } from "../../clients/contract.ts";
export { NotConnectedError } from "../../clients/contract.ts";
