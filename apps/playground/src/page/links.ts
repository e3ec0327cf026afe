/**
 * Programs in links. The fragment, which no server sees, holds the whole program with its settings, compressed:
 *
 *   #p=eJy1VU1v2zAM…     version 1: deflated JSON in base64 for addresses
 *   #g=matmul            an item of the gallery
 */
import { defaultSettings } from "../protocol.ts";
import type { Program, Settings } from "../protocol.ts";

export interface Shared {
  readonly program: Program;
  readonly settings: Settings;
}

/** What a program may come to; a link of a few kilobytes could hold gigabytes otherwise. */
const mostBytes = 16 * 1024 * 1024;

export async function shareFragment({ program, settings }: Shared): Promise<string> {
  const changed = Object.entries(settings).filter(
    ([name, value]) => defaultSettings[name as keyof Settings] !== value,
  );
  const { name, language, source } = program;
  const text = JSON.stringify({ name, language, source, settings: Object.fromEntries(changed) });
  const packed = await through(
    new CompressionStream("deflate-raw"),
    new TextEncoder().encode(text),
  );
  return `#p=${toBase64(packed)}`;
}

/** What a fragment holds; undefined where it holds nothing that can be read. */
export async function readFragment(fragment: string): Promise<Shared | undefined> {
  const packed = /^#p=([\w-]+)$/.exec(fragment)?.[1];
  if (packed === undefined) return undefined;
  try {
    const bytes = await through(new DecompressionStream("deflate-raw"), fromBase64(packed));
    return checked(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    return undefined;
  }
}

/** The gallery item that a fragment names. */
export function galleryItem(fragment: string): string | undefined {
  return /^#g=([\w-]+)$/.exec(fragment)?.[1];
}

function checked(data: unknown): Shared | undefined {
  if (typeof data !== "object" || data === null) return undefined;
  const { name, language, source, settings } = data as { readonly [field: string]: unknown };
  if (typeof name !== "string" || typeof source !== "string") return undefined;
  if (language !== "typescript" && language !== "stablehlo") return undefined;
  const given = typeof settings === "object" && settings !== null ? settings : {};
  const known = Object.entries(given).filter(([field, value]) => {
    const usual = defaultSettings[field as keyof Settings];
    return usual !== undefined && typeof usual === typeof value;
  });
  return {
    program: { name, language, source },
    settings: { ...defaultSettings, ...(Object.fromEntries(known) as Partial<Settings>) },
  };
}

async function through(
  stream: CompressionStream | DecompressionStream,
  bytes: Uint8Array,
): Promise<Uint8Array> {
  const body = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(stream);
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    length += part.value.length;
    parts.push(part.value);
    if (length <= mostBytes) continue;
    await reader.cancel();
    throw new RangeError(`a program has at most ${mostBytes} bytes`);
  }
  return new Uint8Array(await new Blob(parts as Uint8Array<ArrayBuffer>[]).arrayBuffer());
}

function toBase64(bytes: Uint8Array): string {
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromBase64(text: string): Uint8Array {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}
