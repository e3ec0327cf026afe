/** Serves a folder of static files, compressed, as any host would. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { gzipSync } from "node:zlib";

const types = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

/** The file that a URL names; undefined where there is none, null where it is no URL. */
function fileOf(folder, url) {
  const path = pathOf(url);
  if (path === null) return null;
  const file = join(folder, path);
  const candidates = [file, `${file}.html`, join(file, "index.html")];
  return candidates.find((each) => existsSync(each) && statSync(each).isFile());
}

/** Anybody in the same browser can ask for anything: `//`, `/%E0%A4%A`. */
function pathOf(url) {
  try {
    const path = normalize(decodeURIComponent(new URL(url, "http://host").pathname));
    return path.includes("\0") ? null : path;
  } catch {
    return null;
  }
}

/** What was compressed before, by file: as long as the file is the same, it is sent again. */
const compressed = new Map();

function compressedBytes(file) {
  const { mtimeMs } = statSync(file);
  const known = compressed.get(file);
  if (known?.mtimeMs === mtimeMs) return known.bytes;
  const bytes = gzipSync(readFileSync(file));
  compressed.set(file, { mtimeMs, bytes });
  return bytes;
}

/** Resolves to the server, once it listens; port 0 takes any. */
export function serve(folder, port) {
  const server = createServer((request, response) => {
    const file = fileOf(folder, request.url ?? "/");
    if (file === undefined || file === null) {
      response.writeHead(file === null ? 400 : 404).end(file === null ? "no URL" : "not found");
      return;
    }
    const type = types[extname(file)] ?? "application/octet-stream";
    const isText = !/png|woff2/.test(type);
    response.writeHead(200, {
      "content-type": type,
      ...(isText && { "content-encoding": "gzip" }),
    });
    response.end(isText ? compressedBytes(file) : readFileSync(file));
  });
  return new Promise((resolve) => {
    server.listen(port, "127.0.0.1", () => {
      resolve(server);
    });
  });
}
