/** Mistakes on the host: arrays, arguments of a launch, devices and their memory. */
import {
  tensor,
  tensors,
  bf16,
  cdiv,
  convertElements,
  dim,
  f32,
  f64,
  fromNumbers,
  hostArray,
  i32,
  kernel,
  open,
  scalar,
  slice,
  u64,
  unpackElements,
  zeros,
} from "tilewright";
import type { Device } from "tilewright";
import { mistakeTable } from "./mistake.ts";

const n = dim("n", { multipleOf: 4 });
const axpy = kernel(
  {
    name: "axpy",
    grid: { i: cdiv(n, 4) },
    inputs: { x: tensor(f32, [n]), y: tensor(f32, [n]), alpha: scalar(f32) },
    outputs: { out: tensor(f32, [n]) },
  },
  ({ i, x, y, alpha, out }) => {
    const here = slice(i.mul(4), 4);
    out.at(here).store(x.at(here).load().mul(alpha).add(y.at(here).load()));
  },
);
const fixed = kernel(
  { name: "fixed", inputs: { x: tensor(f32, [8, 8]), count: scalar(i32) } },
  () => {
    zeros(f32, [8]);
  },
);
const unbound = kernel(
  { name: "unbound", grid: { i: cdiv(n, 4) }, outputs: { out: tensor(f32, [n]) } },
  () => {
    zeros(f32, [8]);
  },
);
const paired = kernel(
  { name: "paired", grid: { i: cdiv(n, 4) }, cluster: { i: 2 }, inputs: { x: tensor(f32, [n]) } },
  () => {
    zeros(f32, [8]);
  },
);
const grouped = kernel({ name: "grouped", inputs: { xs: tensors(3, f32, [n]) } }, () => {
  zeros(f32, [8]);
});
const increment = kernel(
  { name: "increment", inputs: { y: tensor(f32, [8]) }, inouts: { x: tensor(f32, [8]) } },
  () => {
    zeros(f32, [8]);
  },
);

function ones(count: number) {
  return fromNumbers(f32, [count], Array<number>(count).fill(1));
}

/** Runs `use` on a device of its own. */
async function onDevice(use: (device: Device) => unknown): Promise<void> {
  const device = await open("simulator", { onLeak: () => undefined });
  try {
    await use(device);
  } finally {
    device.dispose();
  }
}

export const launchMistakes = mistakeTable(import.meta.url, [
  {
    name: "15 elements for 16",
    code: "TW0001",
    make: () => hostArray(f32, [4, 4], new Float32Array(15)), // <- 15 elements for 16
    message: "data does not fit f32[4, 4]",
    expected: "Float32Array of 16",
    found: "15",
  },
  {
    name: "numbers where bits are stored",
    code: "TW0002",
    // @ts-expect-error bf16 is stored as bit patterns
    make: () => hostArray(bf16, [2], new Float32Array([1, 2])), // <- numbers where bits are stored
    message: "elements of bf16 are not stored in Float32Array",
    expected: "Uint16Array",
    remedy: "fromNumbers",
  },
  {
    name: "negative extent",
    code: "TW0003",
    make: () => hostArray(f32, [4, -1]), // <- negative extent
    found: "[4, -1]",
  },
  {
    name: "integer of 65 bits",
    code: "TW0004",
    make: () => fromNumbers(u64, [1], [2n ** 64n]), // <- integer of 65 bits
    remedy: "a BigInt from -2^63 to 2^64 - 1",
  },
  {
    name: "conversion into fewer lanes",
    code: "TW0005",
    make: () => convertElements(f32, bf16, new Float32Array(8), new Uint16Array(4)), // <- conversion into fewer lanes
    remedy: "as many target elements",
  },
  {
    name: "bytes that end early",
    code: "TW0006",
    make: () => unpackElements(f32, new Uint8Array(15), 4), // <- bytes that end early
    remedy: "ask for fewer elements",
  },
  {
    name: "unknown device",
    code: "TW4012",
    // @ts-expect-error there is no such device
    make: () => open("quantum"), // <- unknown device
    message: "there is no device quantum",
    expected: "gpu, cpu, emulator, simulator",
  },
  {
    name: "argument left out",
    code: "TW4002",
    make: () =>
      onDevice((device) => {
        // @ts-expect-error alpha is missing
        return device.run(axpy, { x: ones(8), y: ones(8) }); // <- argument left out
      }),
    message: "kernel axpy misses alpha",
    notes: ["the kernel is declared here"],
  },
  {
    name: "argument that is undefined",
    code: "TW4002",
    make: () =>
      onDevice((device) => {
        // @ts-expect-error x is there, and nothing
        return device.run(axpy, { alpha: 2, x: undefined, y: ones(8) }); // <- argument that is undefined
      }),
    message: "kernel axpy misses x",
    found: "alpha, y",
  },
  {
    name: "array left out",
    code: "TW4002",
    make: () =>
      onDevice((device) => {
        // @ts-expect-error x is missing, which would give n its value
        return device.run(paired, {}); // <- array left out
      }),
    message: "kernel paired misses x",
    expected: "x",
    found: "nothing",
  },
  {
    name: "argument too many",
    code: "TW4002",
    make: () =>
      onDevice((device) => {
        const inputs = { x: ones(8), y: ones(8), alpha: 2, beta: 3 };
        return device.run(axpy, inputs); // <- argument too many
      }),
    message: "kernel axpy does not take beta",
  },
  {
    name: "argument of another dtype",
    code: "TW4003",
    make: () =>
      onDevice((device) => {
        const x = fromNumbers(f64, [8], Array<number>(8).fill(1));
        // @ts-expect-error x is f32
        return device.run(axpy, { x, y: ones(8), alpha: 2 }); // <- argument of another dtype
      }),
    message: "argument x of kernel axpy has another number format",
    expected: "f32",
    found: "f64",
  },
  {
    name: "argument of another shape",
    code: "TW4004",
    make: () => onDevice((device) => device.run(fixed, { x: hostArray(f32, [8, 4]), count: 1 })), // <- argument of another shape
    message: "argument x of kernel fixed has another shape",
    expected: "[8, 8]",
    found: "[8, 4]",
  },
  {
    name: "argument of another rank",
    code: "TW4004",
    make: () =>
      onDevice((device) => {
        return device.run(axpy, { x: hostArray(f32, [8, 1]), y: ones(8), alpha: 2 }); // <- argument of another rank
      }),
    message: "argument x of kernel axpy has another shape",
    found: "[8, 1]",
  },
  {
    name: "two lengths for one dimension",
    code: "TW4005",
    make: () => onDevice((device) => device.run(axpy, { x: ones(8), y: ones(12), alpha: 2 })), // <- two lengths for one dimension
    message: "dimension n of kernel axpy has two values",
    expected: "8, from axis 0 of x",
    found: "12, from axis 0 of y",
  },
  {
    name: "unknown dimension",
    code: "TW4006",
    make: () =>
      onDevice((device) => {
        const options = { dimensions: { m: 3 } };
        return device.run(axpy, { x: ones(8), y: ones(8), alpha: 2 }, options); // <- unknown dimension
      }),
    message: "kernel axpy has no dimension m",
    expected: "n",
  },
  {
    name: "length that breaks its promise",
    code: "TW4007",
    make: () => onDevice((device) => device.run(axpy, { x: ones(10), y: ones(10), alpha: 2 })), // <- length that breaks its promise
    message: "10 is no value for dimension n of kernel axpy (axis 0 of x)",
    expected: "a whole multiple of 4",
    remedy: "pad the array",
  },
  {
    name: "dimension that nothing gives",
    code: "TW4008",
    make: () => onDevice((device) => device.run(unbound, {})), // <- dimension that nothing gives
    message: "nothing gives dimension n of kernel unbound a value",
    remedy: "{ dimensions: { … } }",
  },
  {
    name: "blocks that do not fill clusters",
    code: "TW4009",
    make: () => onDevice((device) => device.run(paired, { x: ones(12) })), // <- blocks that do not fill clusters
    message: "axis i of kernel paired has 3 blocks",
    expected: "a multiple of 2",
  },
  {
    name: "device used after its disposal",
    code: "TW4001",
    make: async () => {
      const device = await open();
      device.dispose();
      await device.upload(ones(8)); // <- device used after its disposal
    },
    remedy: "after its last use",
  },
  {
    name: "array used after its disposal",
    code: "TW4010",
    make: () =>
      onDevice(async (device) => {
        const x = await device.upload(ones(8));
        x.dispose();
        return device.download(x); // <- array used after its disposal
      }),
    message: "the array f32[8] was disposed of before this use",
    notes: ["the array was made here"],
  },
  {
    name: "array of another device",
    code: "TW4011",
    make: () =>
      onDevice((first) =>
        onDevice(async (second) => {
          const x = await second.upload(hostArray(f32, [8, 8]));
          return first.run(fixed, { x, count: 1 }); // <- array of another device
        }),
      ),
    message: "the array f32[8, 8] belongs to another device",
  },
  {
    name: "number for an array",
    code: "TW4013",
    make: () =>
      onDevice((device) => {
        // @ts-expect-error x is an array
        return device.run(axpy, { x: 3, y: ones(8), alpha: 2 }); // <- number for an array
      }),
    message: "argument x of kernel axpy is not an array",
    found: "number 3",
  },
  {
    name: "typed array without its format",
    code: "TW4013",
    make: () =>
      onDevice((device) => {
        // @ts-expect-error x is an array with a format and a shape
        return device.run(axpy, { x: new Float32Array(4), y: ones(4), alpha: 2 }); // <- typed array without its format
      }),
    message: "argument x of kernel axpy is not an array",
    remedy: "{ dtype, shape, data }",
  },
  {
    name: "fraction for an integer scalar",
    code: "TW4013",
    make: () => onDevice((device) => device.run(fixed, { x: hostArray(f32, [8, 8]), count: 1.5 })), // <- fraction for an integer scalar
    message: "argument count of kernel fixed is not a whole number",
    found: "number 1.5",
  },
  {
    name: "output that is also an input",
    code: "TW4014",
    make: () =>
      onDevice(async (device) => {
        const [x, y] = [await device.upload(ones(8)), await device.upload(ones(8))];
        device.launch(axpy, { x, y, alpha: 2, out: x }); // <- output that is also an input
      }),
    message: "kernel axpy is given one array for out and for x",
  },
  {
    name: "in-out array that is also an input",
    code: "TW4014",
    make: () =>
      onDevice(async (device) => {
        const x = await device.upload(ones(8));
        return device.run(increment, { x, y: x }); // <- in-out array that is also an input
      }),
    message: "kernel increment is given one array for x and for y",
  },
  {
    name: "list with another number of arrays",
    code: "TW4034",
    make: () => onDevice((device) => device.run(grouped, { xs: [ones(8), ones(8)] })), // <- list with another number of arrays
    message: "argument xs of kernel grouped is a list of 2 arrays",
    expected: "a list of 3 arrays",
    found: "2 of them",
  },
  {
    name: "array for a list of arrays",
    code: "TW4034",
    make: () =>
      onDevice((device) => {
        // @ts-expect-error xs is a list
        return device.run(grouped, { xs: ones(8) }); // <- array for a list of arrays
      }),
    message: "argument xs of kernel grouped is not a list of arrays",
    expected: "a list of 3 arrays",
  },
  {
    name: "arrays of a list with different extents",
    code: "TW4005",
    make: () => onDevice((device) => device.run(grouped, { xs: [ones(8), ones(8), ones(4)] })), // <- arrays of a list with different extents
    message: "dimension n of kernel grouped has two values",
    found: "4, from axis 0 of xs[2]",
  },
]);
