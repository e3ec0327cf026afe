/**
 * The worker's code in parts. A worker has no network, so the page fetches parts for it, as files that nobody reads as
 * text; where one imports another, the worker puts the address it has given that one:
 *
 *   worker.js    import{kernel}from"./chunk-A.js";…     bytes 20 to 34 name chunk-A.js
 *   becomes      import{kernel}from"blob:null/41d0…";…
 *
 * What the first program needs is fetched at once, the compiler and the rest when a program or a view asks for them.
 */

/** Where a file names another that it imports: from byte, to byte, name. */
export type PartImport = readonly [from: number, to: number, name: string];

export interface PartFile {
  readonly name: string;
  readonly code: Blob;
  readonly imports: readonly PartImport[];
}

/** What every file of the worker imports, by name. */
export type PartTable = { readonly [name: string]: readonly PartImport[] };

/** The file that a worker begins with. */
export const entryPart = "worker.js";
