/**
 * `tilewright/emulator`: runs PTX of any compiler on any machine, in Node or in a browser.
 *
 *   const emulator = new Emulator();
 *   const module = emulator.load(text, "axpy.ptx");                module.entries: names and parameters
 *   const x = emulator.upload(fromNumbers(f32, [n], values), "x");
 *   const out = emulator.allocate(f32, [n], "out");
 *   const { findings, counters } = emulator.launch(module, {
 *     blocks: 4,
 *     lanes: 256,
 *     parameters: [x, out, n],
 *   });
 *   emulator.download(out);
 */
export { Emulator } from "./emulator.ts";
export type { EmulatorSettings, LaunchSettings, ParameterValue } from "./emulator.ts";
export type { EntryLaunch, TripleLike } from "./launch-settings.ts";
export { EmulatedArray } from "./array.ts";
export { EmulatedModule } from "./module.ts";
export type { Entry, EntryParameter } from "./module.ts";
export { TensorMapValue } from "./tensor-map-value.ts";
export type { TensorMapSettings } from "./tensor-map-value.ts";
export type { PlainValue, TypedValue } from "./parameters.ts";
export type { TensorMapType } from "../tensor-map.ts";
export type { EmulationCounters, EmulationResult } from "../types.ts";
export { TilewrightError } from "../../support/diagnostics.ts";
