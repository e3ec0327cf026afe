/**
 * A launch made ready: the entry compiled, its shape checked, its parameters and variables in memory. It runs on
 * the thread that made it ready, or in parts on others, which get everything they need by `prepare` too.
 */
import type { PtxModule } from "../ptx/module.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { unknownLocation } from "../support/location.ts";
import { LruCache } from "../support/lru-cache.ts";
import type { Target } from "../targets/target.ts";
import { globalBase, windows, wordSize } from "./addresses.ts";
import { collectiveRules } from "./collective-rules.ts";
import { Launch } from "./machine/launch.ts";
import { byteStates, memoryOf } from "./memory.ts";
import type { EmulatedMemory, Heap, MemoryViews } from "./memory.ts";
import { Naming } from "./naming.ts";
import { loadProgram } from "./program/load.ts";
import type { Program } from "./program/program.ts";
import { functionAddress } from "./program/resolver.ts";
import { variableBytes } from "./program/symbols.ts";
import { initialBytes } from "./program/variables.ts";
import type { Marks } from "./host-workers/touched-bytes.ts";
import type { EmulatedLaunch, EmulatorOptions } from "./types.ts";

/** Modules whose programs are kept: they are compiled JavaScript, of which an engine holds only so much. */
const keptModules = 128;

/** Programs by module, entry and what they do besides. */
const programs = new LruCache<PtxModule, Map<string, Program>>(keptModules);

function programOf(module: PtxModule, entry: string, checks: boolean, marks: boolean): Program {
  const known = programs.get(module) ?? new Map<string, Program>();
  programs.set(module, known);
  const key = `${checks} ${marks} ${entry}`;
  const program =
    known.get(key) ?? loadProgram(module, entry, { checks, marks, collectives: collectiveRules });
  known.set(key, program);
  return program;
}

/** Where a module's variables lie in a memory: they outlive a launch. */
const variableAddresses = new WeakMap<EmulatedMemory, WeakMap<PtxModule, Map<string, number>>>();

/** The address of a variable or function that an initial value names. */
function addressIn(program: Program, globals: ReadonlyMap<string, number>, name: string): bigint {
  const variable = globals.get(name);
  if (variable !== undefined) return BigInt(variable);
  const called = program.functions.find(({ declaration }) => declaration.name === name);
  if (called !== undefined) return BigInt(functionAddress(called.number));
  const constant = program.constants.find(({ variable: { name: other } }) => other === name);
  if (constant !== undefined) return BigInt(windows.const * wordSize + constant.offset);
  throw new Error(`the address of ${name} is not known`);
}

function constantMemory(program: Program, globals: Float64Array): MemoryViews {
  const views = filled(program.constantBytes);
  const known = new Map(program.globals.map(({ name }, slot) => [name, globals[slot] ?? 0]));
  for (const { variable, offset } of program.constants) {
    const address = (name: string, at: number): bigint =>
      addressIn(program, known, name) + BigInt(at);
    views.bytes.set(initialBytes(variable, address), offset);
  }
  return views;
}

function addressesOf(module: PtxModule, program: Program, memory: EmulatedMemory): Float64Array {
  const ofMemory = variableAddresses.get(memory) ?? new WeakMap<PtxModule, Map<string, number>>();
  variableAddresses.set(memory, ofMemory);
  const known = ofMemory.get(module) ?? new Map<string, number>();
  ofMemory.set(module, known);
  const fresh = program.globals.filter(({ name }) => !known.has(name));
  for (const [name, address] of placesOf(fresh, memory)) known.set(name, address);
  for (const variable of fresh) {
    const bytes = initialBytes(
      variable,
      (name, offset) => addressIn(program, known, name) + BigInt(offset),
    );
    memory.write(known.get(variable.name) ?? globalBase, bytes);
  }
  return Float64Array.from(program.globals, ({ name }) => known.get(name) ?? 0);
}

/** Memory for all of the variables, or, where there is not enough, for none: a later launch begins with them anew. */
function placesOf(variables: Program["globals"], memory: EmulatedMemory): Map<string, number> {
  const places = new Map<string, number>();
  try {
    for (const variable of variables)
      places.set(variable.name, memory.allocate(variableBytes(variable), variable.name));
  } catch (error) {
    for (const address of places.values()) memory.free(address);
    throw error;
  }
  return places;
}

function misfit(message: string, expected: string, found: string): TilewrightError {
  return new TilewrightError({
    code: "TW8003",
    message,
    location: unknownLocation,
    expected,
    found,
  });
}

function filled(bytes: number): MemoryViews {
  const views = memoryOf(16 * Math.ceil(bytes / 16));
  views.states.fill(byteStates.written);
  return views;
}

function parameterMemory(program: Program, { parameters, entry }: EmulatedLaunch): MemoryViews {
  const declared = program.entry.declaration.parameters;
  if (declared.length !== parameters.length)
    throw misfit(
      `${entry} takes another number of parameters`,
      `${declared.length}`,
      `${parameters.length}`,
    );
  const views = filled(program.parameterBytes);
  declared.forEach((variable, position) => {
    const bytes = parameters[position] ?? new Uint8Array();
    const size = variableBytes(variable);
    if (bytes.length !== size)
      throw misfit(
        `parameter ${variable.name} of ${entry} has another size`,
        `${size} bytes`,
        `${bytes.length} bytes`,
      );
    views.bytes.set(bytes, program.parameterOffsets[position] ?? 0);
  });
  return views;
}

/** The directives of the entry and the limits of the target. */
function checkShape(program: Program, launch: EmulatedLaunch, target: Target): void {
  const [x, y, z] = launch.threads;
  const threads = x * y * z;
  const { directives } = program.entry.declaration;
  const shape = `${x} × ${y} × ${z} threads`;
  for (const { name, values } of directives) {
    const [wantedX = 1, wantedY = 1, wantedZ = 1] = values;
    if (name === "reqntid" && (wantedX !== x || wantedY !== y || wantedZ !== z))
      throw misfit(
        `${launch.entry} requires another block`,
        `${values.join(" × ")} threads`,
        shape,
      );
    if (name === "maxntid" && threads > wantedX * wantedY * wantedZ)
      throw misfit(`${launch.entry} allows smaller blocks`, `${values.join(" × ")} threads`, shape);
    if (name === "reqnctapercluster" && wantedX !== (launch.cluster ?? 1))
      throw misfit(
        `${launch.entry} requires another cluster`,
        `${wantedX}`,
        `${launch.cluster ?? 1}`,
      );
  }
  if (threads > target.threadsPerBlock || threads < 1)
    throw misfit(
      `no block of ${target.name} has this many threads`,
      `1 to ${target.threadsPerBlock}`,
      `${threads}`,
    );
  const shared = program.staticSharedBytes + launch.sharedBytes;
  if (shared > target.sharedMemoryPerBlock)
    throw misfit(
      `${launch.entry} needs more shared memory than a block of ${target.name} has`,
      `at most ${target.sharedMemoryPerBlock} bytes`,
      `${shared} bytes`,
    );
  const cluster = launch.cluster ?? 1;
  if (launch.blocks[0] % cluster !== 0)
    throw misfit("blocks do not fill clusters", `a multiple of ${cluster}`, `${launch.blocks[0]}`);
}

/** A launch on a heap in which the module's variables have their places. */
export function prepareOn(
  heap: Heap,
  module: PtxModule,
  launch: EmulatedLaunch,
  symbols: Float64Array,
  { target, seed = 0, checks = true }: EmulatorOptions,
  marks?: Marks,
): Launch {
  const program = programOf(module, launch.entry, checks, marks !== undefined);
  const parameters = parameterMemory(program, launch);
  const constants = constantMemory(program, symbols);
  const naming = new Naming(heap, program, launch.names);
  const { isOwn = false } = launch;
  const given = { parameters, constants, symbols, target, seed, checks, marks, naming, isOwn };
  return new Launch({ program, memory: heap, ...given });
}

/** A launch whose shape is as the entry and the target want it. */
export function prepare(
  module: PtxModule,
  launch: EmulatedLaunch,
  memory: EmulatedMemory,
  options: EmulatorOptions,
): Launch {
  const { target, checks = true } = options;
  const program = programOf(module, launch.entry, checks, false);
  checkShape(program, launch, target);
  const symbols = addressesOf(module, program, memory);
  return prepareOn(memory, module, launch, symbols, options);
}
