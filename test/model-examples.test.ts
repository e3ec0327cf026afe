/** The examples that train: losses fall, what is saved is loaded again, and what is written goes on from its beginning. */
import { describe, expect, test } from "vitest";
import { useDevice } from "tilewright/arrays";
import * as characters from "../examples/characters.ts";
import * as gpt2 from "../examples/gpt2.ts";
import { mxfp4, mxfp8e4m3 } from "tilewright";
import * as quantized from "../examples/quantized-weights.ts";

describe("characters", () => {
  const text = "to be or not to be, that is the question. ".repeat(40);
  const alphabet = new characters.Alphabet(text);
  const letters = alphabet.letters.length;
  const configuration = { ...characters.configurations.tiny, width: 16, batch: 4, steps: 25 };
  test("learns, saves, loads and writes", async () => {
    const { parameters, losses } = await characters.train(
      alphabet.encode(text),
      letters,
      configuration,
    );
    expect(losses[0]).toBeGreaterThan(2);
    expect(losses.at(-1)).toBeLessThan(0.75 * (losses[0] ?? 0));
    const bytes = await characters.save(parameters);
    const loaded = await characters.load(bytes, configuration, letters);
    expect(await loaded.layers[0]?.mix.values()).toEqual(await parameters.layers[0]?.mix.values());
    const written = await characters.write(loaded, configuration, alphabet, "to be", 6);
    expect(written).toHaveLength(11);
    expect(written.startsWith("to be")).toBe(true);
  });
  test("draws its losses", () => {
    const drawing = characters.drawLosses([4, 3, 2.5]);
    expect(drawing).toContain("from 4.00 to 2.50");
    expect(drawing.match(/points="([^"]*)"/)?.[1]?.split(" ")).toHaveLength(3);
  });
});

test("gpt2 in its tiny form learns", async () => {
  await useDevice();
  const configuration = gpt2.configurations.tiny;
  let state = gpt2.initialState(gpt2.initialParameters(configuration));
  const [tokens, targets] = gpt2.sampleBatch(configuration, 1);
  const step = gpt2.stepOf(configuration, 1e-2);
  const losses: number[] = [];
  for (let turn = 0; turn < 3; turn++) {
    const result = step(state, tokens, targets);
    state = result.state;
    losses.push(Number(await result.loss.values()));
  }
  // At first every token is about as likely as any other.
  expect(losses[0]).toBeCloseTo(Math.log(configuration.vocabulary), 0);
  expect(losses[2]).toBeLessThan(losses[0] ?? 0);
});

test("weights in formats with scales: eight bits lose nothing to speak of, four bits little", async () => {
  await useDevice();
  const configuration = {
    ...quantized.configurations.small,
    width: 64,
    examples: 256,
    steps: 8,
    calls: 1,
  };
  const trained = await quantized.train(configuration);
  const rows = await quantized.compare(trained, configuration, [mxfp8e4m3, mxfp4]);
  const [bf16, ...others] = rows;
  expect(bf16?.accuracy).toBeGreaterThan(0.7);
  const lost = others.map(
    ({ format, loss }) => [format, Math.abs(loss - (bf16?.loss ?? NaN))] as const,
  );
  for (const [format, apart] of lost)
    expect(apart, format).toBeLessThan(format.endsWith("fp4") ? 0.2 : 0.05);
  expect(quantized.table(rows).split("\n")).toHaveLength(rows.length + 1);
});
