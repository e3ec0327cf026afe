/**
 * Code that another compiler made: PTX or a cubin, launched on a device by the words of `tilewright/emulator`, so
 * that what was emulated runs on a GPU.
 *
 *   const module = device.load(ptx);
 *   device.launch(module, { blocks: 4, threads: 256, parameters: [x, out, n] });
 */
import type { Entry } from "../emulator/api/module.ts";
import { entryNamed } from "../emulator/api/module.ts";
import { entryLaunchNames, launchForm } from "../emulator/api/launch-settings.ts";
import type { EntryLaunch, LaunchForm } from "../emulator/api/launch-settings.ts";
import { ArrayPlace, MapBytes, entryParameterBytes } from "../emulator/api/parameters.ts";
import type { PlacedValue, PlainValue } from "../emulator/api/parameters.ts";
import { mapOf, requireTensorMapSettings } from "../emulator/api/tensor-map-value.ts";
import type { TensorMapSettings } from "../emulator/api/tensor-map-value.ts";
import type { TensorMap } from "../emulator/tensor-map.ts";
import { madeBy, thisCopy } from "../support/duplicate-library.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { optionText, requireKnownOptions, requireText } from "../support/options.ts";
import { requireRunLimits } from "../support/run-limits.ts";
import type { RunLimits } from "../support/run-limits.ts";
import type { Allocation, Repeatable } from "./backend.ts";
import { DeviceArray, disposeSymbol } from "./device-array.ts";
import type { ArrayRegistry } from "./device-array.ts";
import { requireDeviceArray } from "./argument-checks.ts";
import { requireKeptLimits } from "./wait-limits.ts";

/** Code as a back end has it. */
export interface LoadedCode {
  readonly entries: readonly Entry[];
  unload(): void;
}

/** A launch of such code with everything known. */
export interface CodeLaunch<A extends Allocation = Allocation> extends LaunchForm {
  readonly code: LoadedCode;
  /** The bytes of the parameters, in order. */
  readonly parameters: readonly Uint8Array[];
  /** The arrays among them, each of which may be written. */
  readonly arrays: readonly A[];
  readonly limits: RunLimits;
  readonly location: Location;
}

/** What a back end that runs code of others does with it. */
export interface CodeBackend<A extends Allocation = Allocation> {
  load(code: string | Uint8Array, file: string, location: Location): LoadedCode;
  /** Where memory lies for the code. */
  addressOf(allocation: A): number;
  encodeMap(map: TensorMap): Uint8Array;
  bind(launch: CodeLaunch<A>): Repeatable;
}

/** A tensor map of an array on a device, for a parameter of 128 bytes. */
export class DeviceTensorMap {
  /** The array that it describes. */
  readonly array: DeviceArray;
  /** The box and the other settings that it was made with. */
  readonly settings: TensorMapSettings;

  /** @internal */
  constructor(array: DeviceArray, settings: TensorMapSettings) {
    this.array = array;
    this.settings = settings;
  }

  /** @internal */
  get [madeBy](): object {
    return thisCopy;
  }
}

/** What a parameter is given on a device. */
export type CodeValue = DeviceArray | DeviceTensorMap | PlainValue;

/** How an entry is launched on a device. */
export type CodeSettings = EntryLaunch<CodeValue>;

/** PTX or a cubin, loaded on a device. */
export class DeviceModule {
  /** What can be launched, and what each takes. */
  readonly entries: readonly Entry[];
  readonly #owner: ForeignCode;
  #code: LoadedCode | undefined;

  /** @internal */
  constructor(owner: ForeignCode, code: LoadedCode) {
    this.entries = code.entries;
    this.#owner = owner;
    this.#code = code;
  }

  /** @internal */
  get [madeBy](): object {
    return thisCopy;
  }

  /** The entry of this name, or the only one. */
  entry(name?: string): Entry {
    return entryNamed(this.entries, name);
  }

  /** Unloads the code once the launches issued so far have ended. Doing it twice is harmless. */
  dispose(): void {
    const code = this.#code;
    this.#code = undefined;
    this.#owner.forget(this);
    code?.unload();
  }

  [disposeSymbol](): void {
    this.dispose();
  }

  /** @internal The code, for the device that loaded it. */
  codeFor(owner: ForeignCode): LoadedCode {
    if (this.#code !== undefined && owner === this.#owner) return this.#code;
    throw new TilewrightError({
      code: "TW4031",
      message: `the module of ${this.entries.map(({ name }) => name).join(", ")} is not loaded here`,
      expected: "a module that this device loaded, and that was not disposed of",
      found: this.#code === undefined ? "one that was disposed of" : "one of another device",
    });
  }
}

/** A bound entry, and the arrays that it works on. */
export interface BoundCode {
  readonly name: string;
  readonly arrays: readonly DeviceArray[];
  readonly work: Repeatable;
}

/** What a device does with code of others. */
export class ForeignCode {
  readonly #backend: CodeBackend | undefined;
  readonly #arrays: ArrayRegistry;
  readonly #device: { readonly name: string; readonly stopsKernels: boolean };
  readonly #modules = new Set<DeviceModule>();

  constructor(
    backend: CodeBackend | undefined,
    arrays: ArrayRegistry,
    device: { readonly name: string; readonly stopsKernels: boolean },
  ) {
    this.#backend = backend;
    this.#arrays = arrays;
    this.#device = device;
  }

  load(code: unknown, file: string): DeviceModule {
    const location = captureLocation();
    if (typeof code !== "string" && !(code instanceof Uint8Array))
      throw new TilewrightError({
        code: "TW4023",
        message: "load takes code",
        location,
        expected: "PTX as text, or a cubin as a Uint8Array",
        found: optionText(code),
        remedy: 'read the file first: await readFile(path), with "utf8" for PTX',
      });
    requireText("the name of the file", file);
    const module = new DeviceModule(this, this.#runner().load(code, file, location));
    this.#modules.add(module);
    return module;
  }

  forget(module: DeviceModule): void {
    this.#modules.delete(module);
  }

  get modules(): readonly DeviceModule[] {
    return [...this.#modules];
  }

  tensorMap(array: DeviceArray, settings: TensorMapSettings): DeviceTensorMap {
    requireDeviceArray("tensorMap", array);
    requireTensorMapSettings(settings, captureLocation());
    array.allocationFor(this.#arrays);
    return new DeviceTensorMap(array, settings);
  }

  bind(call: "launch" | "bind", module: DeviceModule, settings: CodeSettings): BoundCode {
    const location = captureLocation();
    const backend = this.#runner();
    const code = module.codeFor(this);
    requireKnownOptions(call, settings, Object.keys(entryLaunchNames), "TW4015", location);
    requireRunLimits(call, settings, location);
    requireKeptLimits(call, settings, this.#device.stopsKernels, location);
    const entry = module.entry(settings.entry);
    const arrays: DeviceArray[] = [];
    const place = (value: CodeValue): PlacedValue => {
      if (value instanceof DeviceArray) arrays.push(value);
      else if (value instanceof DeviceTensorMap) arrays.push(value.array);
      return this.#placed(backend, value);
    };
    const values = settings.parameters ?? [];
    const parameters = entryParameterBytes(entry, values, place, location);
    const work = backend.bind({
      ...launchForm(entry, settings, location),
      code,
      parameters,
      arrays: arrays.map((array) => array.allocationFor(this.#arrays)),
      limits: settings,
      location,
    });
    return { name: entry.name, arrays, work };
  }

  #placed(backend: CodeBackend, value: CodeValue): PlacedValue {
    const addressOf = (array: DeviceArray): number =>
      backend.addressOf(array.allocationFor(this.#arrays));
    if (value instanceof DeviceArray) {
      const text = `an array ${value.dtype.name}[${value.shape.join(", ")}]`;
      return new ArrayPlace(addressOf(value), text);
    }
    if (!(value instanceof DeviceTensorMap)) return value;
    const { dtype, shape } = value.array;
    const map = mapOf({ dtype, shape, address: addressOf(value.array) }, value.settings);
    return new MapBytes(backend.encodeMap(map));
  }

  #runner(): CodeBackend {
    if (this.#backend !== undefined) return this.#backend;
    throw new TilewrightError({
      code: "TW4019",
      message: `the ${this.#device.name} runs no code of other compilers`,
      expected: "the emulator, or a GPU",
      found: this.#device.name,
      remedy: 'open("gpu") or open("emulator"); the simulator runs the tiles of kernels',
    });
  }
}
