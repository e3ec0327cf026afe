/**
 * Machine code that the driver made of PTX, for our own cache. The driver hands none out, except through its linker, which compiles
 * otherwise (see `module.ts`). But it writes what it made to files, so that it finds it again:
 *
 *   numbers │ build of the driver │ sm_90 │ PTX, 0 │ options │ cubin        the cubin reaches to the end
 *
 * Where it is told to keep nothing (CUDA_CACHE_DISABLE=1), every process would assemble every kernel. It is then given a folder of
 * this process alone, which goes with the process, and what it writes there is taken over. That form is not documented, so a file
 * counts only where it holds the very PTX that was loaded and behind it one whole cubin; whoever takes that loads it and compares.
 */
import { Buffer } from "node:buffer";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { environmentValue } from "./environment.ts";

const keepNothing = "CUDA_CACHE_DISABLE";
const folderName = "CUDA_CACHE_PATH";

export class DriverFiles {
  #folder: string | undefined;

  /** Does `start`, in which the driver looks at its settings, with a folder for it where it has none. */
  async during<T>(start: () => Promise<T>): Promise<T> {
    const before = {
      [keepNothing]: environmentValue(keepNothing),
      [folderName]: environmentValue(folderName),
    };
    if (this.#folder !== undefined || before[keepNothing] !== "1") return start();
    this.#folder = ownFolder();
    if (this.#folder === undefined) return start();
    process.env[keepNothing] = "0";
    process.env[folderName] = this.#folder;
    try {
      return await start();
    } finally {
      for (const [name, value] of Object.entries(before))
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
    }
  }

  /** The machine code that the driver has just made of this PTX; undefined where there is none to be had. */
  take(ptx: string): Uint8Array | undefined {
    if (this.#folder === undefined) return undefined;
    try {
      for (const name of readdirSync(this.#folder, { recursive: true, encoding: "utf8" })) {
        const path = join(this.#folder, name);
        if (!statSync(path).isFile()) continue;
        const code = cubinBehind(ptx, readFileSync(path));
        if (code !== undefined) return code;
      }
    } catch {
      // What cannot be read is assembled again by the next process.
    }
    return undefined;
  }
}

/** A folder that is this user's alone, and goes when the process does. */
function ownFolder(): string | undefined {
  try {
    const folder = mkdtempSync(join(tmpdir(), "tilewright-driver-"));
    process.once("exit", () => {
      rmSync(folder, { recursive: true, force: true });
    });
    return folder;
  } catch {
    return undefined;
  }
}

const elfStart = Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1]);

/** The cubin in a file of the driver, where that is of this PTX and holds one whole cubin behind it. */
export function cubinBehind(ptx: string, file: Uint8Array): Uint8Array | undefined {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  const text = Buffer.from(`${ptx}\0`);
  const at = bytes.indexOf(text);
  const start = at < 0 ? -1 : bytes.indexOf(elfStart, at + text.byteLength);
  if (start < 0) return undefined;
  const cubin = bytes.subarray(start);
  return isWhole(cubin) ? Uint8Array.from(cubin) : undefined;
}

const cudaMachine = 190;
const elfHeaderBytes = 64;

/** Whether the tables of a cubin of 64 bits end where it does. */
function isWhole(cubin: Buffer): boolean {
  if (cubin.byteLength < elfHeaderBytes || cubin.readUInt16LE(18) !== cudaMachine) return false;
  const [programs, sections] = [32, 40].map((field) => Number(cubin.readBigUInt64LE(field)));
  const ends = [
    (programs ?? 0) + cubin.readUInt16LE(54) * cubin.readUInt16LE(56),
    (sections ?? 0) + cubin.readUInt16LE(58) * cubin.readUInt16LE(60),
  ];
  return Math.max(...ends) === cubin.byteLength;
}
