/**
 * What devices do besides running kernels, on a real one: views with strides, copies between devices, streams, and
 * code of other compilers. Each check throws where something is wrong.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { open } from "../../src/runtime/open.ts";
import type { Device } from "../../src/device/device.ts";
import type { KernelProfile } from "../../src/device/profile/kernel-profile.ts";
import type { DeviceName } from "../../src/runtime/open-options.ts";
import { encodeTensorMap } from "../../src/emulator/tensor-map.ts";
import type { TensorMap } from "../../src/emulator/tensor-map.ts";
import { f32, i32 } from "../../src/formats/dtype.ts";
import { fromNumbers, toNested } from "../../src/formats/hostarray.ts";
import {
  tensor,
  assert,
  dim,
  kernel,
  loop,
  profile,
  scalar,
  semaphore,
  when,
  whileLoop,
} from "../../src/lang/index.ts";
import { useDevice } from "../../src/arrays/index.ts";
import { goneChecks } from "../arrays/gone-uses.ts";
import type { Check } from "./check.ts";
import { emptyArrayChecks } from "./empty-arrays.ts";

const count = (length: number): Float32Array => Float32Array.from({ length }, (_, index) => index);

async function stridedViews(device: Device): Promise<void> {
  const [n, pitch] = [dim("n"), dim("pitch")];
  const rows = kernel(
    {
      name: "rows",
      grid: { i: n },
      inputs: { x: tensor(f32, [n, 64], { strides: [1, pitch] }) },
      outputs: { out: tensor(f32, [n, 64]) },
    },
    ({ i, x, out }) => out.at(i).store(x.at(i).load()),
  );
  const x = await device.upload(fromNumbers(f32, [64, 48], count(64 * 48)));
  const { out } = await device.run(rows, { x: x.transpose() });
  deepEqual(toNested(out), toNested(await device.download(x.transpose())));
  await device.fill(x.slice(7, 9, { axis: 1 }), -1);
  equal(await device.element(x, 5, 7), -1);
  equal(await device.element(x.transpose(), 6, 5), 5 * 48 + 6);
  x.dispose();
}

async function copiesBetweenDevices(device: Device): Promise<void> {
  const other = await open("emulator");
  const here = await device.upload(fromNumbers(f32, [100], count(100)));
  const there = other.allocate(f32, [100]);
  const back = await device.zeros(f32, [100]);
  void other.copy(here, there);
  void device.copy(there, back);
  deepEqual(Array.from((await device.download(back)).data), Array.from(count(100)));
  for (const each of [here, there, back]) each.dispose();
  other.dispose();
}

/** Keeps one processor busy for some time. */
const busy = kernel(
  {
    name: "busy",
    inputs: { x: tensor(f32, [32]), steps: scalar(i32) },
    outputs: { out: tensor(f32, [32]) },
  },
  ({ x, steps, out }) => {
    const initial = x.load();
    out.store(loop({ to: steps, carry: initial }, (_, value) => value.mul(1.000001).add(1e-9)));
  },
);

/** The least of several times: checks of other processes may be on the same GPU. */
async function leastTime(device: Device, work: () => void): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 5; round += 1) times.push(await device.time(work));
  return Math.min(...times);
}

async function streams(device: Device): Promise<string> {
  const x = await device.upload(fromNumbers(f32, [32], count(32)));
  const outs = [0, 1, 2, 3].map(() => device.allocate(f32, [32]));
  const lines = outs.map(() => device.stream());
  const steps = device.name === "gpu" ? 200_000 : 20;
  const launchAll = (on: (index: number) => { launch: Device["launch"] }) => () => {
    outs.forEach((out, index) => {
      on(index).launch(busy, { x, steps, out });
    });
  };
  const alone = launchAll(() => device);
  const beside = launchAll((index) => lines[index] ?? device);
  await device.time(alone);
  const oneByOne = await leastTime(device, alone);
  const expected = Array.from((await device.download(outs[0] ?? x)).data);
  for (const out of outs) await device.fill(out, 0);
  const together = await leastTime(device, beside);
  for (const out of outs) deepEqual(Array.from((await device.download(out)).data), expected);
  if (device.name === "gpu") ok(together < 0.5 * oneByOne, `${together} of ${oneByOne} ms`);
  for (const each of [x, ...outs, ...lines]) each.dispose();
  return `four kernels ${oneByOne.toFixed(2)} ms on one stream, ${together.toFixed(2)} ms on four`;
}

const scaledPtx = `.version 8.0
.target sm_80
.address_size 64
.visible .entry scaled(.param .u64 x, .param .f32 factor, .param .u64 out, .param .u32 n)
{
  .reg .pred %p; .reg .b32 %i, %n; .reg .b64 %x, %out, %step; .reg .f32 %v, %factor;
  ld.param.u64 %x, [x]; ld.param.u64 %out, [out]; ld.param.f32 %factor, [factor]; ld.param.u32 %n, [n];
  mov.u32 %i, %tid.x; setp.ge.u32 %p, %i, %n;
  @%p bra END;
  mul.wide.u32 %step, %i, 4; add.s64 %x, %x, %step; add.s64 %out, %out, %step;
  ld.global.f32 %v, [%x]; mul.f32 %v, %v, %factor; st.global.f32 [%out], %v;
END:
  ret;
}`;

async function codeOfOthers(device: Device): Promise<void> {
  const x = await device.upload(fromNumbers(f32, [5], [1, 2, 3, 4, 5]));
  const out = await device.zeros(f32, [5]);
  const run = async (code: string | Uint8Array, factor: number): Promise<void> => {
    const module = device.load(code, "scaled");
    const parameters = [x, { dtype: f32, value: factor }, out, 5];
    device.launch(module, { blocks: 1, threads: 32, parameters });
    deepEqual(
      Array.from((await device.download(out)).data),
      [1, 2, 3, 4, 5].map((value) => factor * value),
    );
    const bound = device.bind(module, { blocks: 1, threads: 32, parameters });
    const recording = device.record([bound, bound]);
    recording.launch();
    await device.synchronize();
    for (const each of [recording, bound, module]) each.dispose();
  };
  await run(scaledPtx, 2);
  if (device.name === "gpu") await run(assembled(scaledPtx), 3);
  x.dispose();
  out.dispose();
}

function assembled(ptx: string): Uint8Array {
  const folder = mkdtempSync(join(tmpdir(), "cubin-"));
  try {
    const [source, output] = [join(folder, "a.ptx"), join(folder, "a.cubin")];
    writeFileSync(source, ptx);
    const { status, stderr } = spawnSync("ptxas", ["-arch=sm_90", "-o", output, source]);
    equal(status, 0, String(stderr));
    return readFileSync(output);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Copies 128 bytes that it is given by value: the tensor map as the device's driver makes it. */
const mapPtx = `.version 8.0
.target sm_90
.address_size 64
.visible .entry dump(.param .align 64 .b8 map[128], .param .u64 out)
{
  .reg .b32 %i, %v; .reg .b64 %out, %step, %map;
  ld.param.u64 %out, [out]; mov.u32 %i, %tid.x; mul.wide.u32 %step, %i, 4;
  mov.b64 %map, map; add.s64 %map, %map, %step; ld.param.u32 %v, [%map];
  add.s64 %out, %out, %step; st.global.u32 [%out], %v;
  ret;
}`;

async function tensorMaps(device: Device): Promise<void> {
  const module = device.load(mapPtx, "dump");
  const x = await device.zeros(f32, [2, 16, 16, 64]);
  const out = await device.zeros(i32, [32]);
  const settings = [
    { box: [32, 4, 2, 1], swizzle: 128 as const },
    { box: [16, 8, 1, 1], fill: "nan" as const, elementStrides: [1, 2, 1, 1] },
    { box: [32, 64], corners: { lower: [-1, -1], upper: [-1, -1] } },
  ];
  for (const each of settings) {
    const map = device.tensorMap(x, each);
    device.launch(module, { blocks: 1, threads: 32, parameters: [map, out] });
    const found = new Uint8Array((await device.download(out)).data.slice().buffer);
    const address = Number(new DataView(found.buffer).getBigUint64(0, true));
    const described: TensorMap = {
      type: "f32",
      address,
      extents: [64, 16, 16, 2],
      strides: [256, 4096, 65536],
      swizzle: 0,
      fill: "zero",
      ...each,
    };
    deepEqual(found, encodeTensorMap(described), JSON.stringify(each));
  }
  for (const each of [module, x, out]) each.dispose();
}

async function memory(device: Device): Promise<void> {
  const before = device.memory;
  const x = device.allocate(f32, [1 << 20]);
  equal(device.memory.used - before.used, 4 << 20);
  ok(device.memory.reserved >= device.memory.used);
  x.dispose();
  await device.synchronize();
  device.trim();
  equal(device.memory.used, before.used);
}

async function profiles(device: Device): Promise<string> {
  const found: KernelProfile[] = [];
  const profiling = await open(device.name as DeviceName, {
    onProfile: (each) => found.push(each),
  });
  try {
    const blocks = 300;
    const timed = kernel(
      {
        name: "timed",
        grid: { i: blocks },
        inputs: { x: tensor(f32, [blocks, 256]), steps: scalar(i32) },
        outputs: { out: tensor(f32, [blocks, 256]) },
      },
      ({ i, x, steps, out }) => {
        const tile = profile("load", () => x.at(i).load());
        const worked = profile("work", () =>
          loop({ to: steps, carry: tile }, (_, value) => value.mul(1.5).add(1)),
        );
        profile("store", () => out.at(i).store(worked));
      },
    );
    const x = fromNumbers(f32, [blocks, 256], count(blocks * 256));
    const steps = device.name === "gpu" ? 10_000 : 20;
    await profiling.run(timed, { x, steps });
    const [only] = found;
    deepEqual(only?.lost, 0);
    equal(only?.spans.length, 3 * blocks);
    const work = only?.spans.filter(({ name }) => name === "work") ?? [];
    // A step is a multiplication and an addition behind it, at 4 cycles each at least.
    ok(work.every(({ from, to }) => to - from >= (device.name === "gpu" ? 8 : 1) * steps));
    ok(only?.spans.every(({ from, to }) => from >= 0 && to >= from));
    return `${Math.max(...work.map(({ to }) => to))} ${only?.unit}`;
  } finally {
    profiling.dispose();
  }
}

/** Loops and waits end where an assertion fails, and the device goes on. */
async function failedAssertions(device: Device): Promise<void> {
  const counting = kernel(
    { name: "counting", inputs: { x: tensor(i32, [1]) }, outputs: { out: tensor(i32, [1]) } },
    ({ x, out }) => {
      const last = whileLoop(
        x.at(0).loadScalar(),
        (value) => value.ne(0),
        (value) => {
          assert(value.gt(0), "comes to 0");
          return value.sub(2);
        },
      );
      out.at(0).store(last);
    },
  );
  const waiting = kernel(
    {
      name: "waiting",
      grid: { i: 2 },
      inputs: { x: tensor(i32, [1]) },
      outputs: { out: tensor(i32, [2]) },
      scratch: { told: semaphore() },
    },
    ({ i, x, out, told }) => {
      const value = x.at(0).loadScalar();
      when(
        i.eq(0),
        () => {
          assert(value.eq(1), "is 1");
          when(value.eq(1), () => {
            told.signal();
          });
        },
        () => {
          told.wait(1);
        },
      );
      out.at(i).store(value);
    },
  );
  const word = (value: number) => fromNumbers(i32, [1], [value]);
  for (const definition of [counting, waiting])
    await rejects(device.run(definition, { x: word(7) }), { code: "TW3012" });
  deepEqual(toNested((await device.run(counting, { x: word(8) })).out), [0]);
  deepEqual(toNested((await device.run(waiting, { x: word(1) })).out), [1, 1]);
}

const checks: { readonly [name: string]: Check["run"] } = {
  "views with strides": stridedViews,
  "copies between devices": copiesBetweenDevices,
  streams,
  "code of other compilers": codeOfOthers,
  "tensor maps of code": tensorMaps,
  memory,
  profiles,
  "failed assertions": failedAssertions,
  ...emptyArrayChecks,
  "arrays that are gone": goneArrays,
};

/** Arrays that were disposed of or donated: the table of all uses. */
async function goneArrays(device: Device): Promise<void> {
  await useDevice(device);
  try {
    for (const { run } of goneChecks) await run();
  } finally {
    await useDevice();
  }
}

export const runtimeChecks: readonly Check[] = Object.entries(checks).map(([name, run]) => ({
  name: `runtime: ${name}`,
  run,
}));
