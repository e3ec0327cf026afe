/** Calls of what devices and the emulator give: arrays, bound launches, streams, modules; and of asynchronous ops. */
import * as library from "tilewright";
import type { Device } from "tilewright";
import { Emulator } from "tilewright/emulator";
import { f32 } from "tilewright";
import { given, method, traced, untyped } from "./bad-call.ts";
import type { BadCall } from "./bad-call.ts";
import { options, parameter } from "./junk.ts";
import type { Junk, Parameter } from "./junk.ts";
import { copy, deviceNamed, numbers } from "./surroundings.ts";

const ptx = ".version 8.0\n.target sm_90\n.address_size 64\n.entry e(.param .u64 x) { ret; }";

/** A method of something that a device gives, which is disposed of afterwards. */
function ofDevice(
  name: string,
  make: (device: Device) => unknown,
  ...parameters: readonly Parameter[]
): BadCall {
  return {
    name,
    parameters,
    call: async (...values) => {
      const device = await deviceNamed("emulator");
      const owner = (await make(device)) as object;
      try {
        const result: unknown = await method(owner, name.split(".")[1] ?? "")(...values);
        await device.synchronize();
        if (result !== null && typeof result === "object" && "dispose" in result)
          method(result, "dispose")();
      } finally {
        if ("dispose" in owner && owner !== device) method(owner, "dispose")();
      }
    },
  };
}

const uploaded = (device: Device): Promise<unknown> =>
  device.upload(library.fromNumbers(f32, [2, 4], [1, 2, 3, 4, 5, 6, 7, 8]));

const limits = options(() => ({ timeLimit: 10_000 }));

/** A method of a device whose first argument is an array of it. */
function onArray(name: string, ...parameters: readonly Parameter[]): BadCall {
  return {
    name: `Device.${name} on an array`,
    parameters: [parameter(() => "array"), ...parameters],
    call: async (array, ...others) => {
      const device = await deviceNamed("emulator");
      const owned = await device.upload(numbers);
      try {
        const result: unknown = await method(device, name)(
          array === "array" ? owned : array,
          ...others.map((each) => (each === "array" ? owned : each)),
        );
        if (result instanceof library.BoundLaunch) result.dispose();
      } finally {
        owned.dispose();
      }
    },
  };
}

/** A launch of foreign code with one setting replaced. */
function foreign(field: string, value: Parameter): BadCall {
  return {
    name: `Device.launch of a module with ${field}`,
    parameters: [value],
    call: async (replaced) => {
      const device = await deviceNamed("emulator");
      const module = device.load(ptx);
      const settings = { blocks: 1, threads: 32, parameters: [null], [field]: replaced };
      try {
        device.launch(module, settings as never);
        await device.synchronize();
      } finally {
        module.dispose();
      }
    },
  };
}

/** A launch on the emulator itself with one setting replaced. */
function emulated(field: string, value: Parameter): BadCall {
  return {
    name: `Emulator.launch with ${field}`,
    parameters: [value],
    call: (replaced) => {
      const emulator = new Emulator();
      const settings = { blocks: 1, threads: 32, parameters: [null], [field]: replaced };
      emulator.launch(emulator.load(ptx), settings as never);
    },
  };
}

function ofEmulator(name: string, ...parameters: readonly Parameter[]): BadCall {
  return {
    name: `Emulator.${name} with what it takes`,
    parameters,
    call: (...values) => {
      const emulator = new Emulator();
      const array = emulator.upload(numbers);
      const module = emulator.load(ptx);
      const found = values.map((value) =>
        value === "array" ? array : value === "module" ? module : value,
      );
      return method(emulator, name)(...found);
    },
  };
}

const triple = parameter(() => [1, 1, 1], "numbers");
const settings: readonly (readonly [string, Parameter])[] = [
  ["entry", parameter(() => "e", "undefined")],
  ["blocks", triple],
  ["threads", triple],
  ["cluster", parameter(() => 1, "undefined")],
  ["sharedBytes", parameter(() => 0, "undefined", "zero", "huge")],
  ["parameters", parameter(() => [0n], "numbers")],
];

const tensorMapSettings = parameter(() => ({ box: [8] }));

/** Barriers and fences take nothing; whatever they are given changes nothing. */
const bare: readonly BadCall[] = [
  "blockSync",
  "commitGlobal",
  "commitGroup",
  "commitShared",
  "threadIndex",
  "debugBreak",
  "launchNextKernel",
  "waitForPreviousKernel",
  "clusterSync",
  "clusterArrive",
  "clusterWait",
].map((name) => ({
  name,
  parameters: [],
  call: () => {
    const clustered = name.startsWith("cluster");
    library.kernel({ name: "k", grid: { i: 4 }, ...(clustered && { cluster: { i: 2 } }) }, () => {
      if (name === "clusterWait") library.clusterArrive();
      untyped[name]?.();
      if (name === "clusterArrive") library.clusterWait();
    });
  },
}));

/** Records and lists of values, which may have none. */
const treeTakes: readonly Junk[] = ["undefined", "object", "bare", "list", "refusing"];

const asynchronous: readonly BadCall[] = [
  traced(
    "copyAsync",
    parameter(given(({ x }) => x)),
    parameter(given(({ shared }) => shared)),
    parameter(given(({ ready }) => ({ barrier: ready }))),
  ),
  traced("prefetch", parameter(given(({ x }) => x))),
  traced("prefetchMaps", parameter(given(({ x }) => x))),
  traced("tcgen05Commit", parameter(given(({ ready }) => ready))),
  {
    name: "tcgen05Copy",
    parameters: [parameter(() => "from"), parameter(() => "into")],
    call: (...values) => {
      const { f8e8m0fnu } = library;
      const scratch = {
        from: library.smem(f8e8m0fnu, [1, 1, 32, 16]),
        into: library.tmem(f8e8m0fnu, [128, 4], { scales: true }),
      };
      library.kernel({ name: "k", scratch }, (body) => {
        const known = new Map<unknown, unknown>(Object.entries(body));
        untyped["tcgen05Copy"]?.(...values.map((value) => known.get(value) ?? value));
      });
    },
  },
  {
    name: "tcgen05Mma",
    parameters: [
      parameter(() => "sums"),
      parameter(() => "left"),
      parameter(() => "right"),
      options(),
    ],
    call: (...values) => {
      const { bf16 } = library;
      const scratch = {
        sums: library.tmem(f32, [64, 8]),
        left: library.smem(bf16, [64, 16]),
        right: library.smem(bf16, [16, 8]),
      };
      library.kernel({ name: "k", scratch }, (body) => {
        const known = new Map<unknown, unknown>(Object.entries(body));
        untyped["tcgen05Mma"]?.(...values.map((value) => known.get(value) ?? value));
      });
    },
  },
  {
    name: "accumulator",
    parameters: [
      parameter(() => f32),
      parameter(() => [64, 8]),
      parameter(() => undefined, "undefined"),
    ],
    call: (...values) => {
      library.kernel({ name: "k", outputs: { out: library.tensor(f32, [64, 8]) } }, ({ out }) => {
        const sum = untyped["accumulator"]?.(...values) as library.Accumulator<"f32">;
        out.store(sum.wait());
      });
    },
  },
  {
    name: "wgmma",
    parameters: [
      parameter(() => "sum"),
      parameter(() => "left"),
      parameter(() => "right"),
      options(),
    ],
    call: (...values) => {
      library.kernel(
        {
          name: "k",
          outputs: { out: library.tensor(f32, [64, 8]) },
          scratch: {
            left: library.smem(library.bf16, [64, 64]),
            right: library.smem(library.bf16, [64, 8]),
          },
        },
        ({ out, left, right }) => {
          const sum = library.accumulator(f32, [64, 8]);
          const known = new Map<unknown, unknown>([
            ["sum", sum],
            ["left", left],
            ["right", right],
          ]);
          left.store(library.zeros(library.bf16, [64, 64]));
          right.store(library.zeros(library.bf16, [64, 8]));
          library.commitShared();
          const next = untyped["wgmma"]?.(...values.map((value) => known.get(value) ?? value));
          out.store((next as library.Accumulator).wait() as never);
        },
      );
    },
  },
  traced(
    "switchCase",
    parameter(
      given(({ i }) => i),
      "zero",
      "negative",
    ),
    parameter(() => [() => undefined, () => undefined]),
  ),
  traced(
    "whileLoop",
    parameter(
      given(({ i }) => i),
      ...treeTakes,
    ),
    parameter(
      given(
        ({ i }) =>
          () =>
            i.lt(2),
      ),
    ),
    parameter(() => (value: unknown) => value),
  ),
];

const operation = (): unknown => ({
  name: "op",
  inputs: { x: library.tensor(f32, [8]) },
  outputs: { out: library.tensor(f32, [8]) },
  plan: () => ({
    configuration: undefined,
    source: "given",
    launches: [{ kernel: copy, arguments: { x: { argument: "x" }, out: { argument: "out" } } }],
  }),
});

export const deviceCalls: readonly BadCall[] = [
  ...bare,
  ...asynchronous,
  {
    name: "operation",
    parameters: [parameter(operation)],
    call: (value) => untyped["operation"]?.(value),
  },
  {
    name: "isOperation",
    parameters: [],
    call: () => untyped["isOperation"]?.(copy),
  },
  {
    name: "formatLeaks",
    parameters: [parameter(() => [], "list")],
    call: (value) => untyped["formatLeaks"]?.(value),
  },
  ofDevice(
    "DeviceArray.slice",
    uploaded,
    parameter(() => 0, "zero"),
    parameter(() => 1, "undefined", "zero"),
    options(() => ({ axis: 0 })),
  ),
  ofDevice(
    "DeviceArray.reshape",
    uploaded,
    parameter(() => [8]),
  ),
  ofDevice(
    "DeviceArray.transpose",
    uploaded,
    parameter(() => [1, 0], "undefined"),
  ),
  ofDevice(
    "DeviceModule.entry",
    (device) => device.load(ptx),
    parameter(() => "e", "undefined"),
  ),
  {
    name: "Stream.launch",
    parameters: [parameter(() => copy), parameter(() => "arguments"), options()],
    call: async (kernel, args, launchOptions) => {
      const device = await deviceNamed("emulator");
      const stream = device.stream();
      const [x, out] = [await device.upload(numbers), device.allocate(f32, [8])];
      try {
        method(stream, "launch")(kernel, args === "arguments" ? { x, out } : args, launchOptions);
        await device.synchronize();
      } finally {
        for (const each of [stream, x, out]) each.dispose();
      }
    },
  },
  ofDevice(
    "BoundLaunch.launch",
    async (device) => {
      const [x, out] = [await device.upload(numbers), device.allocate(f32, [8])];
      return device.bind(copy, { x, out });
    },
    parameter(() => undefined, "undefined"),
  ),
  ofDevice(
    "Device.load",
    (device) => device,
    parameter(() => ptx),
    parameter(() => "a.ptx", "undefined", "text", "empty"),
  ),
  ofDevice(
    "Device.zeros",
    (device) => device,
    parameter(() => f32),
    parameter(() => [8], "list", "numbers"),
    limits,
  ),
  onArray(
    "fill",
    parameter(() => 1, "nan", "infinite", "negative", "zero", "fraction", "huge"),
    limits,
  ),
  onArray(
    "write",
    parameter(() => numbers),
    limits,
  ),
  onArray(
    "copy",
    parameter(() => "array"),
    limits,
  ),
  onArray(
    "element",
    parameter(() => 0, "zero"),
  ),
  onArray("download", limits),
  onArray("tensorMap", tensorMapSettings),
  ...settings.map(([field, value]) => foreign(field, value)),
  ...settings.map(([field, value]) => emulated(field, value)),
  emulated(
    "seed",
    parameter(() => 1, "undefined", "negative", "zero"),
  ),
  emulated(
    "checks",
    parameter(() => true, "undefined", "boolean"),
  ),
  emulated(
    "target",
    parameter(() => "sm_90a", "undefined"),
  ),
  emulated(
    "stepLimit",
    parameter(() => 1000, "undefined"),
  ),
  emulated(
    "timeLimit",
    parameter(() => 1000, "undefined", "zero", "fraction", "huge", "infinite"),
  ),
  ofEmulator(
    "launch",
    parameter(() => "module"),
    parameter(() => ({ blocks: 1, threads: 1, parameters: [0] })),
  ),
  ofEmulator(
    "run",
    parameter(() => "module"),
    parameter(() => ({ blocks: 1, threads: 1, parameters: [0] })),
  ),
  ofEmulator(
    "allocate",
    parameter(() => f32),
    parameter(() => [8], "list", "numbers"),
    parameter(() => "x", "undefined", "text", "empty"),
  ),
  ofEmulator(
    "write",
    parameter(() => "array"),
    parameter(() => numbers),
  ),
  ofEmulator(
    "download",
    parameter(() => "array"),
  ),
  ofEmulator(
    "unwrittenBytes",
    parameter(() => "array"),
  ),
  ofEmulator(
    "free",
    parameter(() => "array"),
  ),
  ofEmulator(
    "tensorMap",
    parameter(() => "array"),
    tensorMapSettings,
  ),
  {
    name: "Emulator",
    parameters: [options(() => ({ threads: 1 }))],
    call: (value) => {
      new Emulator(value as never).dispose();
    },
  },
];
