/** The links that open a program in the playground, as the page itself makes them (src/page/links.ts). */
import { deflateRawSync } from "node:zlib";

export function playgroundLink(name, source) {
  const text = JSON.stringify({ name, language: "typescript", source, settings: {} });
  return `#p=${deflateRawSync(Buffer.from(text), { level: 9 }).toString("base64url")}`;
}
