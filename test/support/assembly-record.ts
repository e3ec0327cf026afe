/**
 * PTX that the assembler was found content with. The same assembler says the same of the same text, and
 * assembling takes a tenth of all tests' time: only what has changed since it was recorded is assembled again.
 *
 *   test/golden/assembled/src-kernels-sort-top-k.txt
 *     V13.0.88                    which assembler was asked
 *     5f0c9d1e7a3b2c84 0          a text, hashed, and how many bytes a thread of its kernels spills at most
 *
 * The hash leaves out what a renaming changes and the assembler does not read: names of entries, `.file` and `.loc`.
 *
 * A file of tests has a record of its own, which `npm run golden:update` rewrites. What is missing there is assembled, and so is
 * everything with `TILEWRIGHT_CASES=all`, with another assembler, and where machine code can be read, too.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import process from "node:process";
import { expect } from "vitest";
import { readText, repositoryRoot } from "../source-files.ts";
import { assemblerVersion, hasDisassembler } from "./assembler.ts";
import { takesAll } from "./sample.ts";

const folder = "test/golden/assembled";
const isUpdating = process.env["UPDATE_GOLDEN"] === "1";

export class AssemblyRecord {
  readonly #path: string;
  /** Bytes that are spilled, by what stands for a text. */
  readonly #known = new Map<string, number>();

  constructor(testPath: string) {
    const name = relative(repositoryRoot, testPath).replace(/\.test\.ts$/, "");
    this.#path = `${folder}/${name.split(sep).join("-")}.txt`;
    if (isUpdating || !existsSync(join(repositoryRoot, this.#path))) return;
    const [version, ...lines] = readText(this.#path).trim().split("\n");
    if (version !== assemblerVersion) return;
    for (const line of lines) {
      const [text = "", spilled] = line.split(" ");
      this.#known.set(text, Number(spilled));
    }
  }

  /** How many bytes a thread spills at most, where it is known and there was nothing else to say. */
  spilled(text: string): number | undefined {
    return takesAll || hasDisassembler ? undefined : this.#known.get(hashOf(text));
  }

  /** Notes that a text was assembled without a complaint. */
  note(text: string, spilled: number): void {
    this.#known.set(hashOf(text), spilled);
    if (!isUpdating) return;
    const lines = [...this.#known].map(([hash, bytes]) => `${hash} ${bytes}`).sort();
    mkdirSync(join(repositoryRoot, folder), { recursive: true });
    const content = [assemblerVersion, ...lines, ""].join("\n");
    writeFileSync(join(repositoryRoot, this.#path), content);
  }
}

function hashOf(text: string): string {
  return createHash("sha256").update(withoutNames(text)).digest("hex").slice(0, 16);
}

/** The instructions alone: two kernels that differ in their name or in the lines of their source are the same text. */
function withoutNames(text: string): string {
  const entries = [...text.matchAll(/\.entry\s+([\w$]+)/g)].map(([, name = ""]) => name);
  const named = new RegExp(`(?<![\\w$.%])(?:${entries.map(escaped).join("|")})(?![\\w$])`, "g");
  const unnamed = entries.length === 0 ? text : text.replace(named, "entry");
  return unnamed.replace(/^\s*\.(?:file|loc)\b.*\n/gm, "");
}

function escaped(name: string): string {
  return name.replaceAll("$", "\\$");
}

const records = new Map<string, AssemblyRecord>();

/** The record of the file of tests at work. */
export function assemblyRecord(): AssemblyRecord {
  const { testPath = "" } = expect.getState();
  const record = records.get(testPath) ?? new AssemblyRecord(testPath);
  records.set(testPath, record);
  return record;
}
