/** Functions called with something of another kind, as programs without types do. */
import {
  tensor,
  compileAhead,
  f32,
  fromNumbers,
  hostArray,
  kernel,
  open,
  targets,
  toNumbers,
} from "tilewright";
import type { BoundLaunch, Device, DeviceArray } from "tilewright";
import { checkKernel, compareWithReference } from "tilewright/testing";
import { mistakeTable } from "./mistake.ts";

const double = kernel(
  { name: "double", inputs: { x: tensor(f32, [4]) }, outputs: { out: tensor(f32, [4]) } },
  ({ x, out }) => out.store(x.load().mul(2)),
);

interface Things {
  readonly device: Device;
  readonly bound: BoundLaunch;
  readonly x: DeviceArray<"f32">;
}

/** Runs `use` on a device of its own. */
async function withThings(use: (things: Things) => unknown): Promise<void> {
  const device = await open("simulator", { onLeak: () => undefined });
  try {
    const x = await device.upload(fromNumbers(f32, [4], [1, 2, 3, 4]));
    const bound = device.bind(double, { x, out: device.allocate(f32, [4]) });
    await use({ device, bound, x });
  } finally {
    device.dispose();
  }
}

export const callMistakes = mistakeTable(import.meta.url, [
  {
    name: "record of one launch",
    code: "TW4023",
    make: () =>
      withThings(({ device, bound }) => {
        // @ts-expect-error record takes a list
        device.record(bound); // <- record of one launch
      }),
    message: "record takes a list of bound launches",
    found: "a bound launch",
    remedy: "record([…])",
  },
  {
    name: "record of kernels",
    code: "TW4023",
    make: () =>
      withThings(({ device }) => {
        // @ts-expect-error record takes bound launches
        device.record([double]); // <- record of kernels
      }),
    found: "the kernel double",
    remedy: "bind kernels first",
  },
  {
    name: "time of a launch",
    code: "TW4023",
    make: () =>
      withThings(async ({ device, bound }) => {
        // @ts-expect-error time takes a function
        await device.time(bound); // <- time of a launch
      }),
    message: "time takes a function",
    found: "a bound launch",
    remedy: "time(() => bound.launch())",
  },
  {
    name: "time of nothing",
    code: "TW4023",
    make: () =>
      withThings(async ({ device }) => {
        // @ts-expect-error time takes a function
        await device.time(); // <- time of nothing
      }),
    found: "nothing",
    remedy: "a function that launches",
  },
  {
    name: "options where the device's name belongs",
    code: "TW4012",
    make: async () => {
      // @ts-expect-error the name comes first
      await open({ seed: 3 }); // <- options where the device's name belongs
    },
    message: "open takes the name of a device first",
    expected: "simulator",
    found: "an object",
    remedy: 'open("simulator", { … })',
  },
  {
    name: "target that does not exist",
    code: "TW4016",
    make: () => {
      // @ts-expect-error there is no such target
      compileAhead(double, "sm_42"); // <- target that does not exist
    },
    message: "there is no target sm_42",
    expected: "sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_103a, sm_120a, sm_121a",
    found: '"sm_42"',
  },
  {
    name: "part of a target",
    code: "TW4016",
    make: () => {
      // @ts-expect-error a description has more
      compileAhead(double, { name: targets.sm_80.name }); // <- part of a target
    },
    found: "an object",
  },
  {
    name: "compiling a function",
    code: "TW4023",
    make: () => {
      // @ts-expect-error a kernel is made by kernel(…)
      compileAhead(() => 1); // <- compiling a function
    },
    message: "compileAhead takes a kernel first",
    found: "a function",
  },
  {
    name: "running a function",
    code: "TW4023",
    make: () =>
      withThings(({ device }) => {
        // @ts-expect-error a kernel is made by kernel(…)
        return device.run(() => 1, {}); // <- running a function
      }),
    message: "run takes a kernel or an operation first",
    found: "a function",
    remedy: "kernel(…)",
  },
  {
    name: "running without arguments",
    code: "TW4023",
    make: () =>
      withThings(({ device }) => {
        // @ts-expect-error the kernel has an input
        return device.run(double); // <- running without arguments
      }),
    message: "run takes the kernel's arguments by name",
    found: "nothing",
    remedy: "{ x, y }",
  },
  {
    name: "an array for all arguments",
    code: "TW4023",
    make: () =>
      withThings(({ device, x }) => {
        // @ts-expect-error arguments have names
        device.launch(double, x); // <- an array for all arguments
      }),
    message: "launch takes the kernel's arguments by name",
    found: "an array on the device",
  },
  {
    name: "binding nothing",
    code: "TW4023",
    make: () =>
      withThings(({ device }) => {
        // @ts-expect-error a kernel comes first
        device.bind(); // <- binding nothing
      }),
    message: "bind takes a kernel or an operation first",
  },
  {
    name: "more elements than there is room for",
    code: "TW0009",
    make: () =>
      withThings(({ device }) => {
        device.allocate(f32, [2 ** 20, 2 ** 20]); // <- more elements than there is room for
      }),
    message: "this process has no room for 1099511627776 elements of f32",
  },
  {
    name: "upload of a typed array",
    code: "TW4023",
    make: () =>
      withThings(({ device }) => {
        // @ts-expect-error an array of the host has a format and a shape
        return device.upload(new Float32Array(4)); // <- upload of a typed array
      }),
    message: "upload takes an array of the host",
    found: "a typed array",
    remedy: "fromNumbers(dtype, shape, numbers)",
  },
  {
    name: "download of a host array",
    code: "TW4023",
    make: () =>
      withThings(({ device }) => {
        // @ts-expect-error it is on the host already
        return device.download(hostArray(f32, [4])); // <- download of a host array
      }),
    message: "download takes an array on the device",
    found: "an array of the host",
  },
  {
    name: "format by its name",
    code: "TW0007",
    make: () =>
      withThings(({ device }) => {
        // @ts-expect-error f32 itself
        device.allocate("f32", [4]); // <- format by its name
      }),
    message: "this is no number format",
    found: '"f32"',
  },
  {
    name: "numbers of a format by its name",
    code: "TW0007",
    make: () => {
      // @ts-expect-error bf16 itself
      fromNumbers("bf16", [1], [1]); // <- numbers of a format by its name
    },
    remedy: "import the format",
  },
  {
    name: "extent for a shape",
    code: "TW0003",
    make: () => {
      // @ts-expect-error a shape is a list
      hostArray(f32, 4); // <- extent for a shape
    },
    message: "the shape is not a list of extents",
    expected: "[64, 128]",
    found: "4",
  },
  {
    name: "checking nothing",
    code: "TW4023",
    make: async () => {
      // @ts-expect-error a kernel comes first
      await checkKernel(); // <- checking nothing
    },
    message: "checkKernel takes a kernel or an operation first",
  },
  {
    name: "comparing numbers",
    code: "TW4023",
    make: () => {
      const numbers = toNumbers(hostArray(f32, [4]));
      // @ts-expect-error the array itself
      compareWithReference(numbers, () => ({ value: 0, bound: 0 })); // <- comparing numbers
    },
    message: "compareWithReference takes an array of the host",
  },
]);
