/** Makes a module ready to run from an entry; see `program.ts`. */
import type { Operand, PtxFunction, PtxModule, Variable } from "../../ptx/module.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { unknownLocation } from "../../support/location.ts";
import { communicates } from "./communication.ts";
import { FunctionCompiler } from "./compile.ts";
import type { CompileOptions, StepText } from "./compile.ts";
import { locationOf, unknownName } from "./errors.ts";
import { flatten } from "./flatten.ts";
import type { FlatInstruction } from "./flatten.ts";
import { flowOf } from "./flow.ts";
import { helpers } from "./helpers.ts";
import { planSteps } from "./plan.ts";
import type { Program, Site, Step, StepFunction } from "./program.ts";
import type { ProgramFunction } from "./function.ts";
import { provenanceOf } from "./provenance.ts";
import { layOutRegisters } from "./registers.ts";
import { Resolver } from "./resolver.ts";
import { placeVariables, visitSymbols } from "./variables.ts";
import type { LoadedFunction, VariableMap } from "./variables.ts";

interface Reachable {
  /** The entry first. */
  readonly functions: readonly LoadedFunction[];
  /** Everything that they mention, and that variables they mention hold the address of. */
  readonly names: ReadonlySet<string>;
}

function reachable(module: PtxModule, entry: PtxFunction): Reachable {
  const byName = new Map(module.declarations.map((each) => [each.name, each]));
  const functions: LoadedFunction[] = [];
  const names = new Set<string>();
  const queue: (PtxFunction | Variable)[] = [entry];
  const mention = (operand: Operand): void =>
    visitSymbols(operand, (name) => {
      const named = byName.get(name);
      if (named !== undefined && !names.has(name) && named !== entry) queue.push(named);
      names.add(name);
    });
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    if (next.kind === "variable") {
      next.initial?.forEach(mention);
      continue;
    }
    if (next.body === undefined) continue;
    const flat = flatten(next.body, [...next.results, ...next.parameters]);
    functions.push({ declaration: next, number: functions.length, flat });
    for (const { instruction } of flat.instructions) instruction.operands.forEach(mention);
  }
  return { functions, names };
}

function entryOf(module: PtxModule, name: string): PtxFunction {
  for (const declaration of module.declarations)
    if (declaration.kind === "function" && declaration.entry && declaration.name === name)
      return declaration;
  throw new TilewrightError({
    code: "TW8003",
    message: `the module has no entry ${name}`,
    location: unknownLocation,
    expected: module.declarations
      .flatMap((each) => (each.kind === "function" && each.entry ? [each.name] : []))
      .join(", "),
    found: name,
  });
}

function programFunction(
  { declaration, number }: LoadedFunction,
  { places, localBytes }: VariableMap,
): ProgramFunction {
  return {
    declaration,
    number,
    layout: layOutRegisters(declaration.body ?? []),
    localBytes: localBytes.get(declaration) ?? 0,
    results: declaration.results.map((variable) => places.get(variable)?.offset ?? 0),
    parameters: declaration.parameters.map((variable) => places.get(variable)?.offset ?? 0),
    firstStep: 0,
  };
}

/** The instructions that a jump leads to. */
function jumpTargets(module: PtxModule) {
  return (flat: FlatInstruction): readonly number[] | undefined => {
    const { instruction, scope } = flat;
    const [root] = instruction.opcode.split(".");
    if (root === "exit" || root === "ret" || root === "trap") return [];
    if (root !== "bra" && root !== "brx") return undefined;
    const operand = instruction.operands.at(-1);
    const name = operand?.kind === "symbol" ? operand.name : "";
    const labels = root === "bra" ? [name] : (scope.targetList(name)?.labels ?? []);
    return labels.map((label) => {
      const target = scope.label(label);
      if (target === undefined) throw unknownName(label, locationOf(module, instruction));
      return target;
    });
  };
}

export function loadProgram(
  module: PtxModule,
  entryName: string,
  options: CompileOptions,
): Program {
  const entry = entryOf(module, entryName);
  const { functions: loaded, names } = reachable(module, entry);
  const variables = placeVariables(module, entry, loaded, names);
  const functions = loaded.map((each) => programFunction(each, variables));
  const functionNumbers = new Map(loaded.map((each) => [each.declaration.name, each.number]));
  const [first] = loaded;
  const provenance = provenanceOf(
    entry,
    first?.flat.instructions ?? [],
    variables.parameterOffsets,
  );
  const sites: Site[] = [];
  const pieces: (Step | StepText)[] = [];
  loaded.forEach(({ flat }, number) => {
    const target = functions[number] as ProgramFunction;
    const { layout } = target;
    const resolver = new Resolver({ module, variables, layout, functionNumbers });
    const withEnd = ended(flat.instructions);
    const body = { ...flat, instructions: withEnd };
    const blocks = flowOf(body, jumpTargets(module));
    const plan = planSteps(body, blocks, (at) => (name) => {
      resolver.at(at.instruction, at.scope);
      return resolver.variable(name);
    });
    target.firstStep = pieces.length;
    const parts = {
      module,
      function: target,
      functions,
      resolver,
      blocks,
      plan,
      sites,
      options,
      provenance,
    };
    pieces.push(...new FunctionCompiler(parts).compile());
  });
  return {
    entry: functions[0] as ProgramFunction,
    functions,
    steps: assemble(pieces),
    sites,
    communicates: communicates(sites),
    provenance,
    ...variables,
  };
}

/** Functions end with a return, be it written or not. */
function ended(instructions: readonly FlatInstruction[]): readonly FlatInstruction[] {
  const scope = instructions[0]?.scope;
  const last = instructions.at(-1);
  if (scope === undefined || last === undefined)
    throw new TilewrightError({
      code: "TW8003",
      message: "the function has no instructions",
      location: unknownLocation,
      expected: "one instruction at least",
      found: "none",
    });
  const end = { kind: "instruction", opcode: "ret", operands: [] } as const;
  return [...instructions, { instruction: end, scope }];
}

/**
 * Characters of source that are compiled at a time. V8 remembers source that it is given twice, with its code, and takes
 * longer texts of one length for the same: of thousands of kernels that differ in a number it would keep them all.
 */
const sourceLimit = 16_000;

const helperNames = Object.keys(helpers);
const sourceStart = `"use strict";\nconst { ${helperNames.join(", ")} } = helpers;\nreturn [`;

/** Texts in turn, as many together as one source takes, and at least one. */
function sourcesOf(texts: readonly string[]): readonly string[] {
  const sources: string[] = [];
  let source = sourceStart;
  for (const text of texts) {
    if (source !== sourceStart && source.length + text.length > sourceLimit) {
      sources.push(source);
      source = sourceStart;
    }
    source += `${text},\n`;
  }
  return [...sources, source];
}

function compiledSource(source: string): readonly StepFunction[] {
  return maker(source)(helpers);
}

function maker(source: string): (given: typeof helpers) => readonly StepFunction[] {
  try {
    // The text is made from the module's instructions alone, which the loader has taken apart and checked.
    // eslint-disable-next-line @typescript-eslint/no-implied-eval
    return new Function("helpers", `${source}];`) as ReturnType<typeof maker>;
  } catch (error) {
    // Pages whose policy forbids it throw this, and so do workers of the edge.
    if (!(error instanceof EvalError)) throw error;
    throw new TilewrightError({
      code: "TW8024",
      message: "the emulator may not compile PTX to JavaScript here",
      location: unknownLocation,
      expected: "a page or a worker whose policy allows 'unsafe-eval'",
      found: error.message,
    });
  }
}

/** Compiles the text of the steps that are text. */
function assemble(pieces: readonly (Step | StepText)[]): readonly Step[] {
  // In brackets, because engines then compile a function at once instead of reading it twice.
  const texts = pieces.flatMap((piece) =>
    "text" in piece ? [`(function (w, mask) {\n${piece.text}\n})`] : [],
  );
  const compiled = sourcesOf(texts).flatMap(compiledSource).values();
  return pieces.map((piece) => {
    const { weight, cost, site } = piece;
    const run = "text" in piece ? compiled.next().value : piece.run;
    if (run === undefined) throw new Error("a step was not compiled");
    return { run, weight, cost, site };
  });
}
