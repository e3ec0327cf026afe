/** The files of the worker's code: fetched once, handed to every worker. */
import { entryPart } from "../parts.ts";
import type { PartFile, PartTable } from "../parts.ts";

/** Written by the build. */
declare const PARTS: PartTable;

/** Files that need to be there before this one can be loaded, and the file itself, in the order to load them. */
function neededBy(name: string): readonly string[] {
  const order = new Set<string>();
  const add = (each: string): void => {
    for (const [, , other] of PARTS[each] ?? []) if (!order.has(other)) add(other);
    order.add(each);
  };
  add(name);
  return [...order];
}

export class WorkerParts {
  readonly #files = new Map<string, Promise<PartFile>>();

  #starter: Promise<Blob> | undefined;

  /** What begins a worker. */
  get starter(): Promise<Blob> {
    this.#starter ??= fetchBlob("start.js");
    this.#starter.catch(() => (this.#starter = undefined));
    return this.#starter;
  }

  /** A part with all that it imports. */
  files(name: string = entryPart): Promise<readonly PartFile[]> {
    if (PARTS[name] === undefined)
      return Promise.reject(new Error(`the worker has no part ${name}`));
    return Promise.all(neededBy(name).map((each) => this.#file(each)));
  }

  /** Fetches what was not needed yet, so that it is there when it is, with or without a network. */
  async fetchRest(): Promise<void> {
    await Promise.all(Object.keys(PARTS).map((name) => this.#file(name)));
  }

  #file(name: string): Promise<PartFile> {
    const known = this.#files.get(name);
    if (known !== undefined) return known;
    const file = fetchBlob(name).then((code) => ({ name, code, imports: PARTS[name] ?? [] }));
    this.#files.set(name, file);
    // What could not be fetched is asked for again the next time.
    file.catch(() => this.#files.delete(name));
    return file;
  }
}

async function fetchBlob(name: string): Promise<Blob> {
  const response = await fetch(`worker/${name}`);
  if (!response.ok) throw new Error(`worker/${name} could not be loaded`);
  // Chromium's own way from a response to a blob fails now and then while the response is still arriving.
  return new Blob([await response.arrayBuffer()], { type: "text/javascript" });
}
