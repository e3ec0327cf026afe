/** An emulator: global memory, and launches of modules on it. */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { checkedArray, hostArray, isHostArray, storageBytes } from "../../formats/hostarray.ts";
import { requireDType } from "../../formats/argument-checks.ts";
import type { GivenArray, HostArray } from "../../formats/hostarray.ts";
import { refuseForeign } from "../../support/duplicate-library.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { optionText, requireKnownOptions, requireText } from "../../support/options.ts";
import { requireRunLimits } from "../../support/run-limits.ts";
import { targetNamed } from "../../targets/target.ts";
import type { Target, TargetName } from "../../targets/target.ts";
import { emulate, emulateWith } from "../emulate.ts";
import { EmulatedMemory } from "../memory.ts";
import type { NamedArray } from "../naming.ts";
import { parsePtx } from "../../ptx/parser/index.ts";
import { WorkerPool } from "../host-workers/worker-pool.ts";
import type { EmulatedLaunch, EmulationResult, EmulatorOptions } from "../types.ts";
import { EmulatedArray, arrayText } from "./array.ts";
import { EmulatedModule, targetOf } from "./module.ts";
import { count, entryLaunchNames, impossible, launchForm } from "./launch-settings.ts";
import type { EntryLaunch } from "./launch-settings.ts";
import { ArrayPlace, MapBytes, entryParameterBytes } from "./parameters.ts";
import type { PlacedValue, PlainValue } from "./parameters.ts";
import { requireTensorMapSettings, TensorMapValue } from "./tensor-map-value.ts";
import type { TensorMapSettings } from "./tensor-map-value.ts";

/** What a parameter is given here. */
export type ParameterValue = EmulatedArray | TensorMapValue | PlainValue;

/** How a kernel is launched: its grid, its parameters, and what is checked. */
export interface LaunchSettings extends EntryLaunch<ParameterValue> {
  /** Decides the turns of warps and when asynchronous operations complete; 0 unless given. */
  readonly seed?: number;
  /** Whether to look for races, uninitialised values and the rest; true unless given. */
  readonly checks?: boolean;
  /** The GPU whose limits hold; the one that the module is written for unless given. */
  readonly target?: Target | TargetName;
}

const settingNames: { readonly [N in keyof LaunchSettings]-?: true } = {
  ...entryLaunchNames,
  seed: true,
  checks: true,
  target: true,
};

/** Settings of an `Emulator`. */
export interface EmulatorSettings {
  /** Threads that run blocks of long launches by `run`; as many as there are processors unless given, 1 for none. */
  readonly threads?: number;
}

/** A launch with everything looked at. */
interface PreparedLaunch {
  readonly launch: EmulatedLaunch;
  readonly options: EmulatorOptions;
  readonly location: Location;
}

/** A GPU that runs PTX on the host, thread by thread, and finds races, wrong accesses and deadlocks. */
export class Emulator {
  readonly #memory = new EmulatedMemory();
  readonly #arrays = new Set<EmulatedArray>();
  readonly #pool: WorkerPool;
  #isRunning = false;

  constructor(settings: EmulatorSettings = {}) {
    const location = captureLocation();
    requireKnownOptions("Emulator", settings, ["threads"], "TW4015", location);
    const { threads } = settings;
    if (threads !== undefined) count("threads", threads, 1, location, "Emulator");
    this.#pool = new WorkerPool({ threads });
  }

  /** Reads PTX text. With a file's name, reports name lines of the text as well as of its source. */
  load(text: string, file = "<ptx>"): EmulatedModule {
    if (typeof text !== "string")
      throw otherKind(
        "load takes PTX as text",
        "a string",
        text,
        "decode a file's bytes first: new TextDecoder().decode(bytes)",
      );
    requireText("the name of the file", file);
    return new EmulatedModule(parsePtx(text, file));
  }

  /** An array whose contents are undefined; reads of it are findings until something is written. */
  allocate<N extends DTypeName>(
    dtype: DType<N>,
    shape: readonly number[],
    label?: string,
  ): EmulatedArray<N> {
    requireDType(dtype);
    if (label !== undefined) requireText("the label of an array", label);
    const array = new EmulatedArray(this.#memory, dtype, shape, label);
    this.#arrays.add(array);
    return array;
  }

  /** A copy of an array of the host. */
  upload<N extends DTypeName>(array: GivenArray<N>, label?: string): EmulatedArray<N> {
    this.#requireIdle("upload");
    const checked = requireHostArray("upload", array);
    const copy = this.allocate(checked.dtype, checked.shape, label);
    this.write(copy, checked);
    return copy;
  }

  /** Writes all elements of an array. */
  write<N extends DTypeName>(array: EmulatedArray<N>, values: GivenArray<N>): void {
    this.#requireIdle("write");
    this.#own(array);
    const { data, dtype } = requireHostArray("write", values);
    const bytes = storageBytes(data);
    if (dtype !== array.dtype || bytes.length !== array.bytes)
      throw new TilewrightError({
        code: "TW8004",
        message: `these values do not fill ${arrayText(array)}`,
        expected: `${array.bytes} bytes of ${array.dtype.name}`,
        found: `${bytes.length} bytes of ${dtype.name}`,
        remedy: "give as many elements of the same format as the array has",
      });
    this.#memory.write(array.address, bytes);
  }

  /** A copy of what an array holds. */
  download<N extends DTypeName>(array: EmulatedArray<N>): HostArray<N> {
    this.#requireIdle("download");
    this.#own(array);
    const copy = hostArray(array.dtype, array.shape);
    this.#memory.readInto(array.address, storageBytes(copy.data));
    return copy;
  }

  /** How many bytes of an array nothing has written. */
  unwrittenBytes(array: EmulatedArray): number {
    this.#requireIdle("unwrittenBytes");
    this.#own(array);
    return this.#memory.unwritten(array.address, array.bytes);
  }

  /** Gives an array's memory back; later accesses to it are findings. */
  free(array: EmulatedArray): void {
    this.#requireIdle("free");
    this.#own(array);
    this.#arrays.delete(array);
    this.#memory.free(array.address);
  }

  /** A tensor map of an array, to be given as a parameter. */
  tensorMap(array: EmulatedArray, settings: TensorMapSettings): TensorMapValue {
    this.#own(array);
    requireTensorMapSettings(settings, captureLocation());
    return new TensorMapValue(array, settings);
  }

  /**
   * Runs an entry to its end. What would stop it on hardware too is thrown; what else the checks found is
   * given back.
   */
  launch(module: EmulatedModule, settings: LaunchSettings): EmulationResult {
    const { launch, options, location } = this.#prepare("launch", module, settings);
    try {
      return emulate(module.module, launch, this.#memory, options);
    } catch (error) {
      throw located(error, location);
    }
  }

  /**
   * The same yielding to the event loop, and on several threads where that is quicker. Until it is over, arrays can be
   * allocated and nothing else.
   */
  async run(module: EmulatedModule, settings: LaunchSettings): Promise<EmulationResult> {
    const { launch, options, location } = this.#prepare("run", module, settings);
    this.#isRunning = true;
    try {
      return await emulateWith(this.#pool, module.module, launch, this.#memory, options);
    } catch (error) {
      throw located(error, location);
    } finally {
      this.#isRunning = false;
    }
  }

  /**
   * Ends the threads that `run` has started; from now on the calling one works alone. They never keep a process from
   * ending.
   */
  dispose(): void {
    this.#pool.dispose();
  }

  #requireIdle(call: string): void {
    if (!this.#isRunning) return;
    throw new TilewrightError({
      code: "TW8006",
      message: `${call} while a launch is under way`,
      expected: "the launch over",
      found: "one that run(…) has begun and that has not ended",
    });
  }

  #prepare(call: string, module: EmulatedModule, settings: LaunchSettings): PreparedLaunch {
    const location = captureLocation();
    this.#requireIdle(call);
    if (!(module instanceof EmulatedModule))
      throw otherKind(`${call} takes a module first`, "a module", module, "give what load(…) gave");
    requireKnownOptions(call, settings, Object.keys(settingNames), "TW4015", location);
    const entry = module.entry(settings.entry);
    const { seed = 0, checks = true } = settings;
    if (!Number.isSafeInteger(seed))
      throw impossible("seed of launch", "a whole number", seed, location);
    if (typeof checks !== "boolean")
      throw impossible("checks of launch", "true or false", checks, location);
    requireRunLimits(call, settings, location);
    const launch = {
      ...launchForm(entry, settings, location),
      parameters: entryParameterBytes(
        entry,
        settings.parameters ?? [],
        (value: ParameterValue) => this.#place(value),
        location,
      ),
      names: { arrays: this.#names() },
    };
    const target = givenTarget(settings.target, location) ?? targetOf(module, location);
    const options = { target, seed, checks, limits: settings };
    return { launch, options, location };
  }

  #names(): ReadonlyMap<number, NamedArray> {
    return new Map(
      [...this.#arrays].map(({ address, label = "an array", dtype, shape }) => [
        address,
        { name: label, dtype, shape },
      ]),
    );
  }

  #place(value: ParameterValue): PlacedValue {
    if (value instanceof EmulatedArray) {
      this.#own(value);
      return new ArrayPlace(value.address, arrayText(value));
    }
    if (!(value instanceof TensorMapValue)) return value;
    this.#own(value.array);
    return new MapBytes(value.bytes);
  }

  #own(array: EmulatedArray): void {
    if (this.#arrays.has(array)) return;
    refuseForeign("an array of the emulator's", array);
    const isArray = array instanceof EmulatedArray;
    throw new TilewrightError({
      code: "TW8005",
      message: isArray
        ? `${arrayText(array)}, is not in the memory of this emulator`
        : "this is no array of an emulator",
      expected: "an array that this emulator allocated, and that was not freed",
      found: isArray ? "an array that was freed, or another emulator's" : optionText(array),
    });
  }
}

/** A launch that does not fit the entry is the caller's; the rest happens in the kernel. */
function located(error: unknown, location: Location): unknown {
  return error instanceof TilewrightError && error.position === undefined
    ? error.located(location)
    : error;
}

function otherKind(
  message: string,
  expected: string,
  found: unknown,
  remedy: string,
): TilewrightError {
  refuseForeign(`what the emulator was given for ${expected}`, found);
  return new TilewrightError({
    code: "TW8004",
    message,
    expected,
    found: optionText(found),
    remedy,
  });
}

function requireHostArray<N extends DTypeName>(call: string, array: GivenArray<N>): HostArray<N> {
  if (isHostArray(array)) return checkedArray(array as GivenArray<N>);
  throw otherKind(
    `${call} takes an array of the host`,
    "{ dtype, shape, data }",
    array,
    "make one with fromNumbers(dtype, shape, numbers)",
  );
}

function givenTarget(target: unknown, location: Location): Target | undefined {
  if (target === undefined) return undefined;
  const found = targetNamed(target);
  if (found !== undefined) return found;
  throw impossible("target of launch", "the name or the description of a target", target, location);
}
