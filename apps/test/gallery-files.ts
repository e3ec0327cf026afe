/** The gallery as the tests know it: read from the sources, since its module is made for a bundler. */
import { readFileSync } from "node:fs";

export interface GalleryFile {
  readonly id: string;
  readonly source: string;
  readonly reports: { readonly code: string; readonly lines: readonly string[] } | undefined;
}

const index = new URL("../playground/gallery/index.ts", import.meta.url);
const text = readFileSync(index, "utf8");

const sources = new Map(
  [...text.matchAll(/^import (\w+) from "(.+)\?text";$/gm)].map(([, name = "", path = ""]) => [
    name,
    readFileSync(new URL(path, index), "utf8"),
  ]),
);

/** Calls of `item(group, "id", "title", source, …)`. */
const items = text.split(/^ {2}item\(/m).slice(1);

export const galleryFiles: readonly GalleryFile[] = items.map((call) => {
  const [, id = "", name = ""] = /^\s*\w+,\s*"([\w-]+)",\s*"[^"]*",\s*(\w+),/.exec(call) ?? [];
  const [, code] = /code: "(\w+)"/.exec(call) ?? [];
  const [, list = ""] = /lines: \[([^\]]*)\]/.exec(call) ?? [];
  const lines = [...list.matchAll(/"([^"]+)"/g)].map(([, line = ""]) => line);
  const source = sources.get(name);
  if (source === undefined) throw new Error(`no source of ${call.slice(0, 60)}`);
  return { id, source, reports: code === undefined ? undefined : { code, lines } };
});
