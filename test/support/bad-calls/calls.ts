/** The calls, each with what its parameters take. */
import * as library from "tilewright";
import type { GivenArray } from "tilewright";
import { f32 } from "tilewright";
import { fromKernel, zeros } from "tilewright/arrays";
import { Emulator } from "tilewright/emulator";
import { checkKernel, checkMeaning, compareWithReference } from "tilewright/testing";
import { argumentCalls } from "./argument-calls.ts";
import { arrayCalls } from "./array-calls.ts";
import { numpyCalls } from "./numpy-calls.ts";
import { host, method, untyped } from "./bad-call.ts";
import type { BadCall, Untyped } from "./bad-call.ts";
import { deviceCalls } from "./device-calls.ts";
import { fileCalls, graphCalls } from "./file-calls.ts";
import { scaledCalls } from "./scaled-calls.ts";
import { numberTakes, options, parameter } from "./junk.ts";
import type { Parameter } from "./junk.ts";
import { layoutCalls } from "./layout-calls.ts";
import { kernelCalls } from "./kernel-calls.ts";
import { languageCalls } from "./language-calls.ts";
import { pipelineCalls } from "./pipeline-calls.ts";
import { synchronisationCalls } from "./synchronisation-calls.ts";
import { copy, deviceNamed, numbers } from "./surroundings.ts";

const dtype = parameter(() => f32);
/** A kernel beside what it means. */
const meant = fromKernel(
  library.kernel({ name: "meant", outputs: { out: library.tensor(f32, [8]) } }, ({ out }) => {
    out.store(0);
  }),
  () => zeros([8]),
);
const shape = parameter(() => [8], "list", "numbers");
const memoryShape = parameter(() => [8], "list", "numbers");
const text = parameter(() => "name", "text", "empty");
const body = parameter(() => () => undefined, "function");
const array = parameter(() => numbers);
const data = parameter(() => new Float32Array(8), "undefined");

const layoutText = parameter(() => "(L0 L1 L2 L3 L4 W0 W1)", "text", "empty");

const formats: readonly BadCall[] = [
  host("hostArray", dtype, shape, data),
  host(
    "fromNumbers",
    dtype,
    shape,
    parameter(() => [1, 2, 3, 4, 5, 6, 7, 8], "list", "numbers"),
  ),
  host(
    "fromElements",
    dtype,
    shape,
    parameter(() => new Float32Array(8)),
  ),
  host(
    "fromNested",
    dtype,
    parameter(() => [[1, 2]], "list", "numbers"),
  ),
  ...["drawProfiles", "profileTrace"].map((name) =>
    host(
      name,
      parameter(() => [], "list"),
    ),
  ),
  ...["toElements", "toNumbers", "toFloat32", "toNested", "formatArray"].map((name) =>
    host(name, array),
  ),
  ...scaledCalls,
  host(
    "packElements",
    dtype,
    parameter(() => new Float32Array(8)),
  ),
  host(
    "unpackElements",
    dtype,
    parameter(() => new Uint8Array(32)),
    parameter(() => 8, "zero"),
  ),
  host(
    "convertElements",
    dtype,
    parameter(() => library.bf16),
    parameter(() => new Float32Array(8)),
    parameter(() => new Uint16Array(8)),
  ),
  host(
    "convertValue",
    dtype,
    dtype,
    parameter(() => 1, ...numberTakes, "bigint", "boolean"),
  ),
  host(
    "encodeFloat",
    parameter(() => "bf16"),
    parameter(() => 1, ...numberTakes),
  ),
  host(
    "decodeFloat",
    parameter(() => "bf16"),
    parameter(() => 1, "zero"),
  ),
];

const specification: readonly BadCall[] = [
  host(
    "kernel",
    parameter(() => ({ name: "k" })),
    body,
  ),
  host(
    "vmap",
    parameter(() =>
      library.kernel({ name: "k", outputs: { out: library.tensor(f32, [8]) } }, () => undefined),
    ),
    options(),
    options(),
  ),
  ...["grid", "cluster", "inputs", "outputs", "inouts", "scratch", "threads", "name"].map(
    (field): BadCall => ({
      name: `kernel with ${field}`,
      parameters: [
        field === "threads"
          ? parameter(() => ["a"], "undefined")
          : field === "name"
            ? parameter(() => "k")
            : options(),
      ],
      call: (value) => untyped["kernel"]?.({ name: "k", [field]: value }, () => undefined),
    }),
  ),
  ...["inputs", "outputs", "inouts", "scratch", "grid"].map((field): BadCall => ({
    name: `kernel with an entry of ${field}`,
    parameters: [
      parameter(() =>
        field === "grid"
          ? 4
          : field === "scratch"
            ? library.smem(f32, [8])
            : library.tensor(f32, [8]),
      ),
    ],
    call: (value) => untyped["kernel"]?.({ name: "k", [field]: { entry: value } }, () => undefined),
  })),
  host(
    "tensor",
    dtype,
    parameter(() => [8], "list", "numbers"),
    options(),
  ),
  host("scalar", dtype),
  host("smem", dtype, memoryShape),
  host("gmem", dtype, memoryShape),
  host("tmem", dtype, memoryShape, options()),
  host(
    "union",
    parameter(() => ({ a: library.smem(f32, [8]) }), "object", "bare"),
  ),
  host("dim", text, options()),
  host(
    "cdiv",
    parameter(() => 8, "zero"),
    parameter(() => 4),
  ),
  host(
    "slice",
    parameter(() => 0, "zero", "negative", "huge"),
    parameter(() => 4),
  ),
];

function onDevice(
  device: "simulator" | "emulator",
  name: string,
  ...parameters: readonly Parameter[]
): BadCall {
  return {
    name: `Device.${name} of the ${device}`,
    parameters,
    call: async (...values) => {
      const result: unknown = await method(await deviceNamed(device), name)(...values);
      if (result instanceof library.DeviceArray || result instanceof library.BoundLaunch)
        result.dispose();
    },
  };
}

const definition = parameter(() => copy);
const launchOptions = parameter(() => ({ dimensions: {} }), "undefined", "object", "bare");

const devices: readonly BadCall[] = (["simulator", "emulator"] as const).flatMap((name) => [
  onDevice(name, "allocate", dtype, shape),
  onDevice(
    name,
    "upload",
    parameter(() => numbers),
  ),
  onDevice(
    name,
    "run",
    definition,
    parameter(() => ({ x: numbers })),
    launchOptions,
  ),
  onDevice(name, "time", body),
  onDevice(name, "synchronize", options()),
  {
    name: `Device.run with an array, on the ${name}`,
    parameters: [array],
    call: async (x) => (await deviceNamed(name)).run(copy, { x: x as GivenArray<"f32"> }),
  },
  ...["dimensions", "signal", "timeLimit", "stepLimit"].map((field): BadCall => ({
    name: `Device.run with ${field}, on the ${name}`,
    parameters: [
      field === "dimensions"
        ? options()
        : field === "timeLimit"
          ? parameter(() => 60_000, "undefined", "zero", "fraction", "huge", "infinite")
          : field === "stepLimit"
            ? parameter(() => 1e6, "undefined")
            : parameter(() => new AbortController().signal, "undefined"),
    ],
    call: async (value) => (await deviceNamed(name)).run(copy, { x: numbers }, { [field]: value }),
  })),
  ...["dtype", "shape", "data"].map((field): BadCall => ({
    name: `Device.upload with ${field}, on the ${name}`,
    parameters: [parameter(() => numbers[field as "data"])],
    call: async (value) => {
      const array = { ...numbers, [field]: value } as GivenArray;
      (await (await deviceNamed(name)).upload(array)).dispose();
    },
  })),
  {
    name: `Device.download of the ${name}`,
    parameters: [parameter(() => undefined, "undefined")],
    call: async (value) => {
      const device = await deviceNamed(name);
      if (value !== undefined) await device.download(value as never);
    },
  },
  {
    name: `Device.record of the ${name}`,
    parameters: [parameter(() => [], "list")],
    call: async (value) => (await deviceNamed(name)).record(value as never).dispose(),
  },
]);

const opening: readonly BadCall[] = [
  {
    name: "open",
    parameters: [parameter(() => "simulator", "undefined"), options()],
    call: async (...values) => {
      const device = (await untyped["open"]?.(...values)) as library.Device;
      device.dispose();
    },
  },
  ...["target", "schedule", "seed", "checks", "onPrint", "onFindings", "onLeak", "onCompile"].map(
    (field): BadCall => ({
      name: `open with ${field}`,
      parameters: [
        field.startsWith("on")
          ? parameter(() => () => undefined, "undefined", "function")
          : field === "seed"
            ? parameter(() => 1, "undefined", "negative", "zero")
            : parameter(
                () => undefined,
                "undefined",
                ...(field === "checks" ? ["boolean" as const] : []),
              ),
      ],
      call: async (value) => {
        (await library.open("simulator", { [field]: value })).dispose();
      },
    }),
  ),
  host(
    "compileAhead",
    definition,
    parameter(() => "sm_90a", "undefined"),
  ),
  {
    name: "kernelFromCompiled",
    parameters: [
      parameter(() => library.compileAhead(copy).manifest),
      parameter(() => library.compileAhead(copy).ptx),
    ],
    call: (...values) => untyped["kernelFromCompiled"]?.(...values),
  },
  {
    name: "loadKernel",
    parameters: [parameter(() => undefined, "undefined")],
    call: (value) => (value === undefined ? undefined : untyped["loadKernel"]?.(value)),
  },
  host("parseLayout", layoutText),
  host(
    "parseSharedLayout",
    parameter(() => "shared()"),
  ),
  host(
    "parseTmemLayout",
    parameter(() => "tmem(full)"),
  ),
  {
    name: "placeKernel",
    parameters: [parameter(() => copy.kernel), parameter(() => library.targets.sm_90a)],
    call: (...values) => untyped["placeKernel"]?.(...values),
  },
  {
    name: "checkKernel",
    parameters: [definition, parameter(() => ({ x: numbers })), options(() => ({ schedules: 1 }))],
    call: (...values) => (checkKernel as unknown as Untyped)(...values),
  },
  {
    name: "checkMeaning",
    parameters: [parameter(() => meant), options(() => ({ dimensions: {}, derivatives: false }))],
    call: (...values) => (checkMeaning as unknown as Untyped)(...values),
  },
  {
    name: "compareWithReference",
    parameters: [array, parameter(() => () => ({ value: 1, bound: 100 }))],
    call: (...values) => (compareWithReference as unknown as Untyped)(...values),
  },
  {
    name: "Emulator.upload",
    parameters: [array],
    call: (value) => new Emulator().upload(value as GivenArray),
  },
  {
    name: "Emulator.load",
    parameters: [parameter(() => library.compileAhead(copy).ptx)],
    call: (value) => new Emulator().load(value as string),
  },
];

export const calls: readonly BadCall[] = [
  ...formats,
  ...specification,
  ...languageCalls,
  ...pipelineCalls,
  ...synchronisationCalls,
  ...devices,
  ...opening,
  ...deviceCalls,
  ...layoutCalls,
  ...fileCalls,
  ...graphCalls,
  ...arrayCalls,
  ...numpyCalls,
  ...argumentCalls,
  ...kernelCalls,
];

/** Classes whose objects other calls give; their constructors are no part of what is documented, their methods are called. */
export const outside: readonly string[] = [
  "Array",
  "BenchResult",
  "TuneReport",
  "TuningTable",
  "BoundLaunch",
  "CompiledKernel",
  "Device",
  "DeviceArray",
  "DeviceModule",
  "DeviceTensorMap",
  "EmulatedArray",
  "EmulatedModule",
  "NDArray",
  "Operation",
  "Program",
  "Stream",
  "TensorMapValue",
  "TilewrightError",
];
