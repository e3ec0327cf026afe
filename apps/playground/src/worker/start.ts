/** What begins a worker: it makes addresses for the files of the worker's code that the page has sent, and loads the first. */
import { entryPart } from "../parts.ts";
import type { PartFile } from "../parts.ts";
import type { serve } from "./main.ts";

/** Addresses of the files, by name. */
const addresses = new Map<string, string>();

/** Gives files addresses; each comes after those that it imports. */
function add(files: readonly PartFile[]): void {
  for (const { name, code, imports } of files) {
    if (addresses.has(name)) continue;
    const pieces: (Blob | string)[] = [];
    let end = 0;
    for (const [from, to, other] of imports) {
      pieces.push(code.slice(end, from), addresses.get(other) ?? "");
      end = to;
    }
    const whole = new Blob([...pieces, code.slice(end)], { type: "text/javascript" });
    addresses.set(name, URL.createObjectURL(whole));
  }
}

globalThis.onmessage = async ({ data, ports }: MessageEvent<readonly PartFile[]>) => {
  const [port] = ports;
  if (port === undefined) return;
  add(data);
  const worker = (await import(addresses.get(entryPart) ?? "")) as { readonly serve: typeof serve };
  worker.serve(port, { addresses, add });
};
