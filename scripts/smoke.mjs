/**
 * Tries the package in whatever runtime runs this file; copy it beside an installed package:
 *
 *   npm pack && npm install ./tilewright-*.tgz && node smoke.mjs      bun smoke.mjs      deno run -A smoke.mjs
 *
 * It ends with a line that names the runtime, or with an error.
 */
import process from "node:process";
import * as tilewright from "tilewright";
import * as lazy from "tilewright/arrays";
import { Emulator } from "tilewright/emulator";
import { readNpy, writeNpy } from "tilewright/files";
import { reduce } from "tilewright/kernels";
import "tilewright/bench";
import "tilewright/graph";
import "tilewright/testing";

const { tensor, cdiv, dim, f32, fromNumbers, kernel, open, slice, TilewrightError, toNumbers } =
  tilewright;

function requireEqual(what, found, expected) {
  const [left, right] = [JSON.stringify(found), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${what} gives ${left}, not ${right}`);
}

const n = dim("n");
const doubled = kernel(
  {
    name: "doubled",
    grid: { i: cdiv(n, 32) },
    inputs: { x: tensor(f32, [n]) },
    outputs: { out: tensor(f32, [n]) },
  },
  ({ i, x, out }) => {
    const at = slice(i.mul(32), 32);
    out.at(at).store(x.at(at).load().mul(2));
  },
);
const numbers = Array.from({ length: 100 }, (_, index) => index);
const x = fromNumbers(f32, [100], numbers);
const expected = numbers.map((each) => 2 * each);

for (const threads of [undefined, 1, 2]) {
  const name = threads === undefined ? "simulator" : "emulator";
  const device = await (threads === undefined ? open(name) : open(name, { threads }));
  const { out } = await device.run(doubled, { x });
  requireEqual(name, [...toNumbers(out)], expected);
  const { out: few } = await device.run(doubled, { x: [1, 2] });
  requireEqual(`${name} with a list`, [...toNumbers(few)], [2, 4]);
  device.dispose();
}

function mistake() {
  try {
    kernel({ name: "k" }, async () => undefined);
  } catch (error) {
    if (error instanceof TilewrightError) return error;
  }
  throw new Error("a mistake was not reported");
}

const { code, message } = mistake();
requireEqual("an asynchronous body", code, "TW1005");
if (!/smoke\.mjs:\d+/.test(message)) throw new Error(`no line in: ${message}`);

requireEqual("a file", [...toNumbers(await readNpy(writeNpy(x)))], numbers);
requireEqual("an array", [...toNumbers(await lazy.mul(lazy.array([1, 2]), 2).read())], [2, 4]);
if (typeof reduce !== "function") throw new Error("there is no reduce");
const { ptx } = tilewright.compileAhead(doubled, "sm_80");
if (new Emulator().load(ptx).entries.length !== 1) throw new Error("the PTX has no entry");

const runtime = globalThis.Bun
  ? `bun ${globalThis.Bun.version}`
  : globalThis.Deno
    ? `deno ${globalThis.Deno.version.deno}`
    : `node ${process.version}`;
console.log(`tilewright works with ${runtime} on ${process.platform}`);
