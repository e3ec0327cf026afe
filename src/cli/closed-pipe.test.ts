import { execFile } from "node:child_process";
import { EventEmitter } from "node:events";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { buildSync } from "esbuild";
import { endWithReader } from "./closed-pipe.ts";

// Windows has neither this shell nor its pipes.
const onPosix = test.skipIf(process.platform === "win32");

onPosix("a program whose reader has gone ends quietly", async () => {
  const source = fileURLToPath(new URL("./closed-pipe.ts", import.meta.url));
  const { outputFiles } = buildSync({
    stdin: {
      contents: `import { endWithReader } from ${JSON.stringify(source)};
        endWithReader(process.stdout, () => process.exit(), console.error);
        for (let i = 0; i < 20000; i += 1) console.log("line", i);`,
      resolveDir: "/",
    },
    bundle: true,
    platform: "node",
    format: "esm",
    write: false,
  });
  const program = outputFiles[0]?.text ?? "";
  const line = `"$0" --input-type=module -e "$1" | head -n 1`;
  const ended = await promisify(execFile)("sh", ["-c", line, process.execPath, program]);
  expect(ended).toEqual({ stdout: "line 0\n", stderr: "" });
});

test("other failures of a stream are told", () => {
  const stream = new EventEmitter();
  const told: unknown[] = [];
  endWithReader(
    stream,
    () => told.push("it ended"),
    (error) => told.push(error),
  );
  const full = Object.assign(new Error("no space left"), { code: "ENOSPC" });
  stream.emit("error", full);
  expect(told).toEqual([full]);
});
