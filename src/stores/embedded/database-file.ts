import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readSync,
} from "node:fs";
import { StoreError } from "../../core/errors.ts";

/**
 * Positions of fields in the first two pages of an LMDB file, counted from the start of a page.
 * Each commit writes one of the two pages.
 */
const at = { magic: 24, version: 28, pageBytes: 48, freeRoot: 88, mainRoot: 136, commit: 152 };
const headBytes = 160;
const readWrite = constants.R_OK | constants.W_OK;
const magic = 0xbeefc0de;
const formatVersion = 2;
const noRoot = 0xffff_ffff_ffff_ffffn;

/**
 * Throws if the file cannot be written, or is not a complete LMDB database: the package `lmdb`
 * would end the process with a segmentation fault. Damage in other parts of the file is not
 * detected.
 */
export function checkDatabaseFile(path: string): void {
  accessSync(path, readWrite);
  if (existsSync(`${path}-lock`)) accessSync(`${path}-lock`, readWrite);
  const file = openSync(path, "r");
  try {
    const first = read(file, 0);
    const pageBytes = first.length < headBytes ? 0 : first.readUInt32LE(at.pageBytes);
    const heads = [first, read(file, pageBytes)];
    // The size is read after the two pages: another process may enlarge the file in between, and
    // the roots may be in the new part.
    const fileBytes = BigInt(fstatSync(file).size);
    if (!heads.every((head) => isHead(head, fileBytes, BigInt(pageBytes)))) {
      throw damaged(path, "it is not an LMDB file, or not all of one");
    }
  } finally {
    closeSync(file);
  }
}

export function damaged(path: string, why: string, cause?: unknown): StoreError {
  return new StoreError(
    `the lock database ${path} is damaged (${why}). Stop all processes that use it and delete ` +
      "its folder; keep the file fences beside that",
    { cause },
  );
}

/** Returns the number of the last commit. The caller must hold the write lock of LMDB. */
export function latestCommit(file: number): bigint {
  const first = read(file, 0);
  const second = read(file, first.readUInt32LE(at.pageBytes));
  const commits = [first, second].map((head) => head.readBigUInt64LE(at.commit)) as [
    bigint,
    bigint,
  ];
  return commits[0] > commits[1] ? commits[0] : commits[1];
}

function read(file: number, position: number): Buffer {
  const head = Buffer.alloc(headBytes);
  return head.subarray(0, readSync(file, head, 0, headBytes, position));
}

function isHead(head: Buffer, fileBytes: bigint, pageBytes: bigint): boolean {
  if (head.length < headBytes) return false;
  if (head.readUInt32LE(at.magic) !== magic) return false;
  if (head.readUInt32LE(at.version) !== formatVersion) return false;
  return [at.freeRoot, at.mainRoot].every((place) => {
    const root = head.readBigUInt64LE(place);
    return root === noRoot || (root + 1n) * pageBytes <= fileBytes;
  });
}
