/** The server of the playground answers whatever any page of the same browser may ask it, and goes on. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { serve } from "../build/serve.mjs";

const folder = mkdtempSync(join(tmpdir(), "tilewright-serve-"));
let server: Server;
beforeAll(async () => {
  writeFileSync(join(folder, "index.html"), "<p>here");
  writeFileSync(join(tmpdir(), "tilewright-serve-secret"), "secret");
  server = (await serve(folder, 0)) as Server;
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true });
  rmSync(join(tmpdir(), "tilewright-serve-secret"));
});

/** The path goes out as it is, which fetch would not let it. */
function statusOf(path: string): Promise<number | undefined> {
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port, path }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on("error", reject)
      .end();
  });
}

test.each([
  ["/", 200],
  ["/index", 200],
  ["/%E0%A4%A", 400],
  ["//", 400],
  ["//[", 400],
  ["/%00", 400],
  ["/..%2ftilewright-serve-secret", 404],
  ["/%2e%2e/tilewright-serve-secret", 404],
  ["/..%5ctilewright-serve-secret", 404],
  [`/${"a".repeat(5000)}`, 404],
  ["*", 404],
])("%s", async (path, status) => {
  expect(await statusOf(path)).toBe(status);
  expect(await statusOf("/")).toBe(200);
});
