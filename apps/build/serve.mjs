/** Serves a folder of static files, compressed, as any host would. */
import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { createGzip } from "node:zlib";

const types = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

function fileOf(folder, url) {
  const path = normalize(decodeURIComponent(new URL(url, "http://host").pathname));
  const file = join(folder, path);
  const candidates = [file, `${file}.html`, join(file, "index.html")];
  return candidates.find((each) => existsSync(each) && statSync(each).isFile());
}

/** Resolves to the server, once it listens; port 0 takes any. */
export function serve(folder, port) {
  const server = createServer((request, response) => {
    const file = fileOf(folder, request.url ?? "/");
    if (file === undefined) {
      response.writeHead(404).end("not found");
      return;
    }
    const type = types[extname(file)] ?? "application/octet-stream";
    const isText = !/png|woff2/.test(type);
    response.writeHead(200, {
      "content-type": type,
      ...(isText && { "content-encoding": "gzip" }),
    });
    const stream = createReadStream(file);
    (isText ? stream.pipe(createGzip()) : stream).pipe(response);
  });
  return new Promise((resolve) => {
    server.listen(port, "127.0.0.1", () => {
      resolve(server);
    });
  });
}
