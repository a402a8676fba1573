import { InvalidOptionError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import { resourcesOf } from "../core/resources.ts";
import { fenceMax, fenceOf, guardedResources, type Fenced } from "./guard.ts";

/** Header with the resource names: percent-encoded, separated by commas. */
export const resourceHeader = "Holdfast-Resource";
/** Header with the fence as a decimal number. */
export const fenceHeader = "Holdfast-Fence";

/** Limit for the resource header. Some servers reject requests with longer headers. */
const headerLengthMax = 8_192;

export interface FenceHeaderOptions {
  /** Resource names on the server, if they differ. @default the resources of the lease */
  readonly resource?: string | readonly string[];
}

/**
 * Returns the headers that carry the fence and its resources to a guarded server. Throws
 * InvalidOptionError if the encoded names are longer than 8192 characters.
 */
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

/** Returns a copy of `init` for `fetch` with the headers of `fenceHeaders` set. */
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

/** Parses the fence header. Returns undefined if it is not a valid fence. */
export function readFence(value: string): bigint | undefined {
  if (!/^[1-9]\d{0,18}$/.test(value)) return undefined;
  const fence = BigInt(value);
  return fence <= fenceMax ? fence : undefined;
}

/** Parses the resource header. Returns undefined if it is malformed. */
export function readResources(value: string): readonly string[] | undefined {
  if (value.length > headerLengthMax) return undefined;
  try {
    return resourcesOf(value.split(",").map((part) => decodeURIComponent(part.trim())));
  } catch {
    return undefined;
  }
}
