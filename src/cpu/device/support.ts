/** Whether this host runs what kernels are compiled to, asked once. */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { CpuFeatures } from "../compiled-kernel.ts";

/** A module with nothing in it. */
const nothing = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

/** A function of v128: engines without vectors refuse it. */
const vectors = Uint8Array.of(
  ...[...nothing, 1, 6, 1, 0x60, 1, 0x7b, 1, 0x7b],
  ...[3, 2, 1, 0, 10, 6, 1, 4, 0, 0x20, 0, 0x0b],
);

let known: { readonly refusal: (() => TilewrightError) | undefined } | undefined;

/** Throws where there is no WebAssembly, or the page's policy forbids to compile any. */
export function requireWebAssembly(): void {
  known ??= { refusal: refusalOf() };
  if (known.refusal !== undefined) throw known.refusal();
}

function refusalOf(): (() => TilewrightError) | undefined {
  const { WebAssembly: there }: { readonly WebAssembly?: typeof WebAssembly } = globalThis;
  if (there === undefined)
    return () =>
      new TilewrightError({
        code: "TW4703",
        message: "this host has no WebAssembly, which kernels are compiled to for the CPU",
        expected: "an engine with WebAssembly and its vectors of 128 bits",
        found: "none",
      });
  try {
    void new there.Module(nothing);
    if (there.validate(vectors)) return undefined;
    return () =>
      new TilewrightError({
        code: "TW4703",
        message:
          "this host has no vectors of WebAssembly, which kernels are compiled to for the CPU",
        expected: "an engine with WebAssembly and its vectors of 128 bits",
        found: "an engine that knows no v128",
      });
  } catch (error) {
    const found = error instanceof Error ? error.message : String(error);
    return () =>
      new TilewrightError({
        code: "TW4703",
        message: "this page may not compile WebAssembly, which kernels are compiled to for the CPU",
        expected: "a Content-Security-Policy whose script-src has 'wasm-unsafe-eval'",
        found,
      });
  }
}

/** Forgets the answer, for tests of hosts that have none. */
export function askAgain(): void {
  known = undefined;
}

/** A function of `f32x4.relaxed_madd`: an engine that knows no relaxed SIMD refuses the module. */
const relaxed = Uint8Array.of(
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...[1, 6, 1, 0x60, 1, 0x7b, 1, 0x7b],
  ...[3, 2, 1, 0],
  ...[10, 13, 1, 11, 0, 0x20, 0, 0x20, 0, 0x20, 0, 0xfd, 0x85, 0x02, 0x0b],
);

let features: CpuFeatures | undefined;

/** What the engine offers, asked once. */
export function engineFeatures(): CpuFeatures {
  // `Float16Array` came to V8 with the newer scheduler.
  return (features ??= {
    relaxed: WebAssembly.validate(relaxed),
    keepsLoadsInOrder: "Float16Array" in globalThis,
  });
}
