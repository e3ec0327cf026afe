/** Kernels compiled ahead of time: what comes out of files runs as the kernel itself does. */
import { Buffer } from "node:buffer";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeDriver } from "../../test/support/fake-driver/driver.ts";
import { elementwise, fakeKernels, openFake } from "../../test/support/fake-driver/harness.ts";
import { readCompiled } from "../cuda/browser.ts";
import type { Device } from "../device/device.ts";
import { bf16, f32, i32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import {
  tensor,
  assert,
  barrier,
  cdiv,
  copyAsync,
  debugPrint,
  dim,
  dot,
  kernel,
  scalar,
  slice,
  smem,
} from "../lang/index.ts";
import { checksum } from "../ptx/checksum.ts";
import { compileAhead } from "../lower/compile-ahead.ts";
import { kernelFromCompiled } from "../ptx/compiled-kernel.ts";
import type { CompiledAhead } from "../lower/compile-ahead.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { targets } from "../targets/target.ts";
import { loadKernel } from "./load-kernel.ts";
import { open } from "./open.ts";

const n = dim("n", { multipleOf: 4 });
const scaled = kernel(
  {
    name: "scaled",
    grid: { i: cdiv(n, 64) },
    inputs: { x: tensor(f32, [n]), factor: scalar(f32) },
    outputs: { out: tensor(f32, [n]) },
    inouts: { counts: tensor(i32, [1, n], { strides: [n, 1] }) },
  },
  ({ i, x, factor, out, counts }) => {
    const here = slice(i.mul(64), 64);
    out.at(here).store(x.at(here).load().mul(factor));
    counts.at(0, here).store(counts.at(0, here).load().add(1));
  },
);

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tilewright-compiled-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Through JSON, as a file has it. */
function throughFile({ manifest }: Pick<CompiledAhead, "manifest">): unknown {
  return JSON.parse(JSON.stringify(manifest));
}

function parameterKinds({ plan }: CompiledAhead["manifest"]): readonly string[] {
  const { parameters } = plan as { readonly parameters: readonly { readonly kind: string }[] };
  return parameters.map(({ kind }) => kind);
}

function writeCompiled(name: string, { manifest, ptx }: CompiledAhead): string {
  writeFileSync(join(folder, `${name}.ptx.json`), JSON.stringify(manifest));
  writeFileSync(join(folder, `${name}.ptx`), ptx);
  return join(folder, `${name}.ptx.json`);
}

async function on<T>(device: Device, use: (device: Device) => Promise<T>): Promise<T> {
  try {
    return await use(device);
  } finally {
    device.dispose();
  }
}

async function failure(work: () => unknown): Promise<TilewrightError> {
  try {
    await work();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

const numbers = Array.from({ length: 100 }, (_, index) => index - 50);
const inputs = {
  x: fromNumbers(f32, [100], numbers),
  factor: 0.5,
  counts: fromNumbers(i32, [100], numbers),
};

describe("on the emulator", () => {
  test("files run as the kernel does, without it", async () => {
    const path = writeCompiled("scaled.sm_90a", compileAhead(scaled));
    const loaded = await loadKernel<typeof scaled>(path);
    expect([loaded.name, loaded.target.name]).toEqual(["scaled", "sm_90a"]);
    await on(await open("emulator"), async (device) => {
      const { out, counts } = await device.run(loaded, inputs);
      expect([...toNumbers(out)]).toEqual(numbers.map((value) => value / 2));
      expect([...toNumbers(counts)]).toEqual(numbers.map((value) => value + 1));
      expect(device.compilations).toMatchObject([
        { kernel: "scaled", reason: "compiled ahead of time", cached: true },
      ]);
      // The second launch loads nothing.
      await device.run(loaded, inputs);
      expect(device.compilations).toHaveLength(1);
    });
  });

  test("tensor maps, products and messages come along", async () => {
    const product = kernel(
      {
        name: "product",
        inputs: { a: tensor(bf16, [64, 32]), b: tensor(bf16, [32, 64]) },
        outputs: { out: tensor(f32, [64, 64]) },
        scratch: { tile: smem(bf16, [64, 32]), arrived: barrier() },
      },
      ({ a, b, out, tile, arrived }) => {
        copyAsync(a, tile, { barrier: arrived });
        arrived.wait();
        debugPrint("begins with {}", a.at(0, 0).loadScalar());
        assert(a.at(0, 0).loadScalar().gt(0), "a begins with a positive number");
        out.store(dot(tile.load(), b.load()));
      },
    );
    const { ptx, manifest } = compileAhead(product, targets.sm_90a);
    const loaded = kernelFromCompiled<typeof product>(throughFile({ manifest }), ptx);
    const lines: string[] = [];
    const device = await open("emulator", { onPrint: (line) => lines.push(line) });
    await on(device, async () => {
      const ones = (rows: number, columns: number, value: number) =>
        fromNumbers(bf16, [rows, columns], new Float64Array(rows * columns).fill(value));
      const { out } = await device.run(loaded, { a: ones(64, 32, 1), b: ones(32, 64, 2) });
      expect(new Set(toNumbers(out))).toEqual(new Set([64]));
      expect(lines.join()).toContain("begins with 1");
      expect(parameterKinds(manifest)).toContain("tensorMap");
      const broken = await failure(() =>
        device.run(loaded, { a: ones(64, 32, -1), b: ones(32, 64, 2) }),
      );
      expect(broken.message).toContain("a begins with a positive number");
    });
  });

  test("arguments are checked like the kernel's own", async () => {
    const { ptx, manifest } = compileAhead(scaled);
    const loaded = kernelFromCompiled<typeof scaled>(throughFile({ manifest }), ptx);
    await on(await open("emulator"), async (device) => {
      const codeOf = async (given: object): Promise<string> =>
        (await failure(() => device.run(loaded, { ...inputs, ...given }))).code;
      expect(await codeOf({ y: 1 })).toBe("TW4002");
      expect(await codeOf({ x: fromNumbers(i32, [100], numbers) })).toBe("TW4003");
      expect(await codeOf({ x: fromNumbers(f32, [10, 10], numbers) })).toBe("TW4004");
      expect(await codeOf({ x: fromNumbers(f32, [99], numbers.slice(1)) })).toBe("TW4007");
      expect(await codeOf({ factor: "much" })).toBe("TW4013");
      expect(await codeOf({ counts: fromNumbers(i32, [99], numbers.slice(1)) })).toBe("TW4004");
    });
  });

  test("PTX for older GPUs runs on later ones, other code on its own kind alone", async () => {
    const older = kernelFromCompiled<typeof scaled>(...parts(targets.sm_80));
    await on(await open("emulator"), (device) => device.run(older, inputs));
    const newer = kernelFromCompiled<typeof scaled>(...parts(targets.sm_100a));
    await on(await open("emulator"), async (device) => {
      const error = await failure(() => device.run(newer, inputs));
      expect(error).toMatchObject({
        code: "TW4019",
        expected: "code for sm_90a",
        found: "PTX for sm_100a",
      });
    });
    const tooNew = kernelFromCompiled<typeof scaled>(...parts(targets.sm_90a));
    await on(await open("emulator", { target: "sm_80" }), async (device) => {
      expect((await failure(() => device.run(tooNew, inputs))).code).toBe("TW4019");
    });
  });
});

function parts(target: (typeof targets)[keyof typeof targets]): [unknown, string] {
  const { ptx, manifest } = compileAhead(scaled, target);
  return [throughFile({ manifest }), ptx];
}

test("the simulator takes kernels, not code", async () => {
  const loaded = kernelFromCompiled<typeof scaled>(...parts(targets.sm_90a));
  await on(await open("simulator"), async (device) => {
    const error = await failure(() => device.run(loaded, inputs));
    expect([error.code, error.found]).toEqual(["TW4019", "PTX for sm_90a"]);
  });
});

describe("on a GPU", () => {
  const plain = kernel(
    {
      name: "plain",
      grid: { i: cdiv(n, 64) },
      inputs: { x: tensor(f32, [n]) },
      outputs: { out: tensor(f32, [n]) },
    },
    ({ i, x, out }) => {
      const here = slice(i.mul(64), 64);
      out.at(here).store(x.at(here).load().mul(2));
    },
  );
  const kernels = { ...fakeKernels, plain: elementwise((x) => x) };

  test("PTX is assembled, once", async () => {
    const { ptx, manifest } = compileAhead(plain);
    expect(parameterKinds(manifest)).toEqual(["array", "array", "size"]);
    const loaded = kernelFromCompiled<typeof plain>(throughFile({ manifest }), ptx);
    const launches: number[] = [];
    const driver = new FakeDriver({
      kernels: {
        plain: {
          sizes: [8, 8, 4],
          run: ({ parameters }) => launches.push(parameters[2]?.getUint32(0, true) ?? 0),
        },
      },
    });
    const { device } = openFake({ driver });
    await on(device, async () => {
      await device.run(loaded, { x: inputs.x });
      await device.run(loaded, { x: inputs.x });
      expect(launches).toEqual([100, 100]);
      expect(device.compilations).toHaveLength(1);
    });
  });

  test("a cubin is loaded as it is; one of another target, or broken, is refused", async () => {
    const { manifest } = compileAhead(plain);
    const cubin = new TextEncoder().encode("no cubin at all");
    const { device } = openFake({ kernels });
    await on(device, async () => {
      const described = { ...manifest, code: { form: "cubin", checksum: checksumOf(cubin) } };
      const broken = kernelFromCompiled<typeof plain>(described, cubin);
      const error = await failure(() => device.run(broken, { x: inputs.x }));
      expect(error.code).toBe("TW4506");
      const other = kernelFromCompiled<typeof plain>({ ...described, target: "sm_80" }, cubin);
      const refused = await failure(() => device.run(other, { x: inputs.x }));
      expect(refused).toMatchObject({ code: "TW4019", found: "a cubin for sm_80" });
    });
  });

  test("PTX that is too new for the driver is refused with its version", async () => {
    const { ptx, manifest } = compileAhead(plain);
    const newer = ptx.replace(/\.version \S+/, ".version 99.0");
    const described = { ...manifest, code: { form: "ptx", checksum: checksumOf(newer) } };
    const { device } = openFake({ kernels });
    await on(device, async () => {
      const loaded = kernelFromCompiled<typeof plain>(described, newer);
      const error = await failure(() => device.run(loaded, { x: inputs.x }));
      expect([error.code, error.found]).toEqual(["TW4504", "PTX 99.0"]);
    });
  });
});

test("PTX and a cubin of one kernel lie side by side", async () => {
  const { ptx, manifest } = compileAhead(scaled);
  writeCompiled("scaled.sm_90a", { ptx, manifest });
  const cubin = { ...manifest, code: { form: "cubin", checksum: checksum(Uint8Array.of(1, 2)) } };
  writeFileSync(join(folder, "scaled.sm_90a.cubin.json"), JSON.stringify(cubin));
  writeFileSync(join(folder, "scaled.sm_90a.cubin"), Uint8Array.of(1, 2));
  const text = await loadKernel(join(folder, "scaled.sm_90a.ptx.json"));
  const machine = await loadKernel(join(folder, "scaled.sm_90a.cubin.json"));
  expect([text.code, machine.code]).toEqual([ptx, Buffer.of(1, 2)]);
});

test("sources are named as they are seen from the working directory", () => {
  const checked = kernel(
    { name: "checked", inputs: { x: tensor(f32, [4]) }, outputs: { out: tensor(f32, [4]) } },
    ({ x, out }) => {
      const tile = x.load();
      assert(tile.lt(5), "small");
      out.store(tile);
    },
  );
  const { ptx, manifest } = compileAhead(checked);
  const own = "src/runtime/load-kernel.test.ts";
  expect(ptx).toContain(`.file 1 "${own}"`);
  expect(manifest.kernel.position?.file).toBe(own);
  expect(manifest.plan).toMatchObject({ messages: [{ position: { file: own } }] });
  expect(JSON.stringify(manifest) + ptx).not.toContain(process.cwd());
});

test("a target is given by its description or its name", () => {
  expect(compileAhead(scaled, "sm_80")).toEqual(compileAhead(scaled, targets.sm_80));
});

/** The checksum that a refusal names. */
function checksumOf(code: string | Uint8Array): string {
  const { manifest } = compileAhead(scaled);
  try {
    kernelFromCompiled(manifest, code);
  } catch (error) {
    return /checksum (\w+)/.exec((error as TilewrightError).found ?? "")?.[1] ?? "";
  }
  throw new Error("the code is the manifest's own");
}

describe("what is no compiled kernel", () => {
  test("a manifest of something else is TW4020", async () => {
    const { ptx, manifest } = compileAhead(scaled);
    for (const given of [
      undefined,
      [],
      { ...manifest, format: "tilewright compiled kernel 0" },
      { ...manifest, target: "sm_75" },
      { ...manifest, plan: undefined },
    ])
      expect((await failure(() => kernelFromCompiled(given, ptx))).code).toBe("TW4020");
  });

  test("code that changed is TW4021", async () => {
    const { ptx, manifest } = compileAhead(scaled);
    const forms = [ptx.replace("mul", "add"), new TextEncoder().encode(ptx)];
    for (const code of forms)
      expect((await failure(() => kernelFromCompiled(manifest, code))).code).toBe("TW4021");
  });

  test("files that are missing or no JSON are TW4022, at the caller's line", async () => {
    const missing = await failure(() => loadKernel(join(folder, "missing.json")));
    expect(missing).toMatchObject({ code: "TW4022" });
    expect(missing.position?.file).toMatch(/load-kernel\.test\.ts$/);
    writeFileSync(join(folder, "broken.json"), "{");
    expect((await failure(() => loadKernel(join(folder, "broken.json")))).code).toBe("TW4022");
    const path = writeCompiled("scaled.sm_90a", compileAhead(scaled));
    rmSync(path.replace(/\.json$/, ""));
    expect((await failure(() => loadKernel(path))).found).toContain("scaled.sm_90a.ptx");
    expect(await failure(() => loadKernel(path.replace(/\.json$/, "")))).toMatchObject({
      code: "TW4022",
      expected: expect.stringContaining(".json") as string,
    });
  });

  test("a browser has no files", async () => {
    const error = await failure(() => readCompiled("axpy.sm_90a.json"));
    expect([error.code, error.expected]).toEqual([
      "TW4022",
      expect.stringContaining("kernelFromCompiled"),
    ]);
  });
});
