import { InvalidOptionError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import { resourcesOf } from "../core/resources.ts";
import { fenceMax, fenceOf, guardedResources, type Fenced } from "./guard.ts";

/** Which resource the request is about; several are separated by commas, each percent-encoded. */
export const resourceHeader = "Holdfast-Resource";
/** The fence as a decimal number. */
export const fenceHeader = "Holdfast-Fence";

/** Some servers refuse longer headers altogether. */
const headerLengthMax = 8_192;

export interface FenceHeaderOptions {
  /** What the server calls the resource. @default the resources of the lease */
  readonly resource?: string | readonly string[];
}

/** The headers that tell a guarded server which fence a request was sent under. */
export function fenceHeaders(
  fenced: Fenced | bigint,
  options: FenceHeaderOptions = {},
): Record<string, string> {
  knownOptions("options", options, ["resource"]);
  const resources = guardedResources(fenced, options.resource);
  const value = resources.map((resource) => encodeURIComponent(resource)).join(",");
  if (value.length > headerLengthMax) {
    const got = `${value.length} characters`;
    throw new InvalidOptionError("resource", `at most ${headerLengthMax} encoded characters`, got);
  }
  return { [resourceHeader]: value, [fenceHeader]: String(fenceOf(fenced)) };
}

/** A copy of `init` for `fetch`, with the headers of `fenceHeaders` set. */
export function withFence(
  fenced: Fenced | bigint,
  init: RequestInit = {},
  options: FenceHeaderOptions = {},
): RequestInit {
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(fenceHeaders(fenced, options))) {
    headers.set(name, value);
  }
  return { ...init, headers };
}

/** Reads the fence header; undefined when it is not a fence. */
export function readFence(value: string): bigint | undefined {
  if (!/^[1-9]\d{0,18}$/.test(value)) return undefined;
  const fence = BigInt(value);
  return fence <= fenceMax ? fence : undefined;
}

/** Reads the resource header; undefined when it is malformed. */
export function readResources(value: string): readonly string[] | undefined {
  if (value.length > headerLengthMax) return undefined;
  try {
    return resourcesOf(value.split(",").map((part) => decodeURIComponent(part.trim())));
  } catch {
    return undefined;
  }
}
