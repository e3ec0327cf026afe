/**
 * What the methods of a device take, checked before anything is done with it. Types say the same, but a
 * program whose types were erased still runs, and would end in an error of the library's insides:
 *
 *   device.record(step)     TW4023: record takes a list of bound launches; write record([step])
 */
import type { DTypeName } from "../formats/dtype.ts";
import { checkedArray, isHostArray } from "../formats/hostarray.ts";
import type { GivenArray, HostArray } from "../formats/hostarray.ts";
import { isKernelDefinition } from "../lang/index.ts";
import type { KernelDefinition } from "../lang/index.ts";
import { CompiledKernel } from "../ptx/compiled-kernel.ts";
import { refuseForeign } from "../support/duplicate-library.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { isReadable, isRecord, optionText } from "../support/options.ts";
import type { ArgumentValue } from "./arguments.ts";
import { BoundLaunch } from "./bound-launch.ts";
import { DeviceArray } from "./device-array.ts";
import { isOperation } from "./operation.ts";
import type { Operation } from "./operation.ts";
import { Stream } from "./stream.ts";

function otherKind(
  call: string,
  expected: string,
  found: unknown,
  remedy: string,
): TilewrightError {
  refuseForeign(`what ${call} was given`, found);
  return new TilewrightError({
    code: "TW4023",
    message: `${call} takes ${expected}`,
    expected,
    found: kindText(found),
    remedy,
  });
}

/** A value in words, by what it is to a device. */
function kindText(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value instanceof BoundLaunch) return "a bound launch";
  if (value instanceof DeviceArray) return "an array on the device";
  if (value instanceof Stream) return "a stream";
  if (isKernelDefinition(value) || value instanceof CompiledKernel)
    return `the kernel ${value.kernel.name}`;
  if (isHostArray(value)) return "an array of the host";
  if (ArrayBuffer.isView(value)) return "a typed array";
  return optionText(value);
}

export function requireKernel(
  call: string,
  definition: unknown,
): asserts definition is KernelDefinition | CompiledKernel | Operation {
  if (isKernelDefinition(definition) || definition instanceof CompiledKernel) return;
  if (isOperation(definition)) return;
  throw otherKind(
    call,
    "a kernel or an operation first",
    definition,
    "give what kernel(…), loadKernel(…) or a function of tilewright/kernels gave, such as softmax({ x: f32 })",
  );
}

export function requireStream(call: string, stream: unknown): asserts stream is Stream {
  if (stream instanceof Stream) return;
  throw otherKind(call, "a stream, or nothing", stream, "give what device.stream() gave");
}

export function requireArguments(
  call: string,
  args: unknown,
): asserts args is { readonly [name: string]: ArgumentValue } {
  if (isRecord(args) && isReadable(args, Object.keys(args)) && !isHostArray(args)) return;
  throw otherKind(
    call,
    "the kernel's arguments by name",
    args,
    "give an object with a value for each name, such as { x, y }, or {} where there are none",
  );
}

export function requireBoundLaunches(launches: unknown): void {
  const expected = "a list of bound launches";
  if (!Array.isArray(launches))
    throw otherKind("record", expected, launches, "put what bind(…) gave into a list: record([…])");
  const other = launches.findIndex((each) => !(each instanceof BoundLaunch));
  if (other < 0) return;
  throw otherKind("record", expected, launches[other], "bind kernels first: record([bind(…), …])");
}

/** What `onProfile` has heard; somebody may have put it together himself. */
export function requireProfiles(call: string, profiles: unknown): void {
  const isSpan = (each: unknown): boolean => isRecord(each) && Array.isArray(each["block"]);
  const isProfile = (each: unknown): boolean =>
    isRecord(each) &&
    Array.isArray(each["axes"]) &&
    Array.isArray(each["spans"]) &&
    each["spans"].every(isSpan);
  if (Array.isArray(profiles) && profiles.every(isProfile)) return;
  throw otherKind(
    call,
    "a list of profiles",
    profiles,
    "give what onProfile was called with, in a list",
  );
}

export function requireWork(work: unknown): void {
  if (typeof work === "function") return;
  const remedy =
    work instanceof BoundLaunch
      ? "write time(() => bound.launch())"
      : "give a function that launches what is to be timed";
  throw otherKind("time", "a function", work, remedy);
}

/** The array of the host that was given, checked; a plain list of elements is converted. */
export function requireHostArray<N extends DTypeName>(
  call: string,
  array: GivenArray<N>,
): HostArray<N> {
  if (isHostArray(array)) return checkedArray(array as GivenArray<N>);
  throw otherKind(
    call,
    "an array of the host",
    array,
    "give { dtype, shape, data }, which fromNumbers(dtype, shape, numbers) makes",
  );
}

export function requireDeviceArray(call: string, array: unknown): void {
  if (array instanceof DeviceArray) return;
  throw otherKind(call, "an array on the device", array, "give what upload or allocate gave");
}

/** The arrays of the device among a launch's arguments, alone or in lists. */
export function arraysAmong(args: unknown): readonly DeviceArray[] {
  const values: readonly unknown[] = isRecord(args) ? Object.values(args).flat() : [];
  return values.filter((value) => value instanceof DeviceArray);
}
