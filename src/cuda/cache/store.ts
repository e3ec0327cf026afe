/**
 * Files by key, for many processes at once. A file carries its key and a checksum and is put in place whole, so
 * a reader sees either nothing or all of it; one that does not check out, or lies under another name, counts as
 * nothing and is written anew. When the folder grows over its limit, the files that were not used for longest go.
 *
 *   tilewright kernel cache 2\n       what this is
 *   <key>\n                           under which name
 *   {"plan":…}\n                      header, JSON in one line
 *   <bytes>                           body
 *   <32 bytes>                        sha256 of everything before
 *
 * Code from a file runs on the GPU with the rights of the user, so only what this user wrote is believed:
 *
 *   files and a folder that is made here    readable by their owner alone
 *   a file of another owner, or one         counts as nothing
 *     that others may write to
 *   folders, links, pipes                   are not read, not followed and not removed
 */
import { createHash, randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  rmdirSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import type { Stats } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { TilewrightError } from "../../support/diagnostics.ts";

const magic = "tilewright kernel cache 2\n";
const checksumBytes = 32;
const newline = 10;
const suffix = ".kernel";

/** Looking through a folder of thousands at every write would cost more than compiling; so many processes may write. */
const sharers = 8;

export interface StoredFile {
  readonly header: unknown;
  readonly body: Uint8Array;
}

/** A file of the store, as `tilewright cache list` shows it. */
export interface StoreEntry {
  readonly key: string;
  readonly bytes: number;
  /** When it was last used. */
  readonly used: Date;
}

export class FileStore {
  readonly folder: string;
  readonly #limitBytes: number;
  /** Bytes that can be written before the folder is looked through again. */
  #room = 0;

  constructor(folder: string, limitBytes: number) {
    this.folder = folder;
    this.#limitBytes = limitBytes;
  }

  /** The file of that key; undefined where there is none that checks out. */
  read(key: string): StoredFile | undefined {
    const file = this.peek(key);
    if (file !== undefined) touch(this.#path(key));
    return file;
  }

  /** The same, without counting as a use. */
  peek(key: string): StoredFile | undefined {
    try {
      const content = readOwnFile(this.#path(key));
      return content === undefined ? undefined : decode(key, content);
    } catch {
      return undefined;
    }
  }

  /** Keeps a file. Where that fails, the next process compiles again. */
  write(key: string, header: unknown, body: Uint8Array): void {
    const name = `${key}.${process.pid}.${randomBytes(6).toString("hex")}.temporary`;
    const temporary = join(this.folder, name);
    try {
      mkdirSync(this.folder, { recursive: true, mode: 0o700 });
      const content = encode(key, header, body);
      writeFileSync(temporary, content, { flag: "wx", mode: 0o600 });
      renameSync(temporary, this.#path(key));
      this.#room -= content.byteLength;
      if (this.#room < 0) this.#evict();
    } catch {
      attempt(() => {
        rmSync(temporary, { force: true });
      });
    }
  }

  /** Why nothing can be kept; undefined where it can. */
  writeProblem(): string | undefined {
    const trial = join(this.folder, `${process.pid}.${randomBytes(6).toString("hex")}.temporary`);
    try {
      const made = mkdirSync(this.folder, { recursive: true, mode: 0o700 });
      writeFileSync(trial, "", { flag: "wx", mode: 0o600 });
      rmSync(trial);
      if (made !== undefined) rmdirSync(this.folder);
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** All files, most recently used first. */
  list(): readonly StoreEntry[] {
    return this.#usable(() =>
      this.#files()
        .filter(({ name }) => name.endsWith(suffix))
        .map(({ name, bytes, used }) => ({ key: name.slice(0, -suffix.length), bytes, used }))
        .sort((left, right) => right.used.getTime() - left.used.getTime()),
    );
  }

  /** Removes all files; gives how many there were. */
  clear(): number {
    return this.#usable(() => {
      const files = this.#files();
      for (const { name } of files) rmSync(join(this.folder, name), { force: true });
      return files.filter(({ name }) => name.endsWith(suffix)).length;
    });
  }

  #path(key: string): string {
    return join(this.folder, `${key}${suffix}`);
  }

  #usable<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw new TilewrightError({
        code: "TW4602",
        message: `the cache folder ${this.folder} cannot be used`,
        expected: "a folder that can be made, read and written",
        found: error instanceof Error ? error.message : String(error),
      });
    }
  }

  /** The store's own files, finished and left over. */
  #files(): readonly { readonly name: string; readonly bytes: number; readonly used: Date }[] {
    let names: readonly string[] = [];
    try {
      names = readdirSync(this.folder);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
    return names
      .filter((name) => name.endsWith(suffix) || name.endsWith(".temporary"))
      .flatMap((name) => {
        try {
          const found = lstatSync(join(this.folder, name));
          return found.isFile() ? [{ name, bytes: found.size, used: found.mtime }] : [];
        } catch {
          return []; // Another process has removed it meanwhile.
        }
      });
  }

  /** Removes what was not used for longest until the rest is within the limit. */
  #evict(): void {
    const files = [...this.#files()].sort(
      (left, right) => left.used.getTime() - right.used.getTime(),
    );
    let total = files.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const { name, bytes } of files) {
      if (total <= this.#limitBytes) break;
      // What cannot be removed must not keep the rest from going.
      attempt(() => {
        rmSync(join(this.folder, name), { force: true });
        total -= bytes;
      });
    }
    this.#room = (this.#limitBytes - total) / sharers;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

/** Does what is well worth trying and no loss where it fails. */
function attempt(work: () => void): void {
  try {
    work();
  } catch {
    // A folder that cannot be written to is no reason not to run kernels.
  }
}

/** Marks a file as used now; where that fails it looks older than it is, and goes earlier. */
function touch(path: string): void {
  attempt(() => {
    const now = new Date();
    utimesSync(path, now, now);
  });
}

/** What a file of this user holds; undefined where the name leads to anything else. */
function readOwnFile(path: string): Uint8Array | undefined {
  // A pipe must not make the program wait, nor a link lead out of the folder.
  const file = openSync(path, constants.O_RDONLY | noFollow);
  try {
    return isOwn(fstatSync(file)) ? readFileSync(file) : undefined;
  } finally {
    closeSync(file);
  }
}

/** Systems without these flags have neither pipes in folders nor owners of files as numbers. */
const flags: { readonly [name: string]: number | undefined } = constants;
const noFollow = (flags["O_NOFOLLOW"] ?? 0) | (flags["O_NONBLOCK"] ?? 0);

const writableByOthers = 0o022;

function isOwn(found: Stats): boolean {
  if (!found.isFile()) return false;
  const user = process.getuid?.();
  return user === undefined || (found.uid === user && (found.mode & writableByOthers) === 0);
}

function encode(key: string, header: unknown, body: Uint8Array): Uint8Array {
  const start = new TextEncoder().encode(`${magic}${key}\n${JSON.stringify(header)}\n`);
  const content = new Uint8Array(start.byteLength + body.byteLength + checksumBytes);
  content.set(start);
  content.set(body, start.byteLength);
  const end = content.byteLength - checksumBytes;
  content.set(createHash("sha256").update(content.subarray(0, end)).digest(), end);
  return content;
}

function decode(key: string, content: Uint8Array): StoredFile | undefined {
  const end = content.byteLength - checksumBytes;
  const start = new TextEncoder().encode(`${magic}${key}\n`);
  if (end < start.byteLength) return undefined;
  const expected = createHash("sha256").update(content.subarray(0, end)).digest();
  if (!expected.equals(content.subarray(end))) return undefined;
  if (!start.every((byte, index) => byte === content[index])) return undefined;
  const line = content.indexOf(newline, start.byteLength);
  if (line < 0) return undefined;
  const text = new TextDecoder().decode(content.subarray(start.byteLength, line));
  return {
    header: JSON.parse(text) as unknown,
    body: Uint8Array.from(content.subarray(line + 1, end)),
  };
}
