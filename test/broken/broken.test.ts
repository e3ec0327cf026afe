/** Every mistake of every family is found under every schedule, with its lines; without it all is clean. */
import { describe, expect, test } from "vitest";
import { checkKernel } from "tilewright/testing";
import { turns } from "../../src/testing/check-kernel.ts";
import { takesAll } from "../support/sample.ts";
import { counting, gather, sum, turnTaking } from "./blocks.ts";
import { mailbox, multicast, peers } from "./cluster.ts";
import { exchange, meeting } from "./exchange.ts";
import { findingsOf, markedLines, namedLines } from "./family.ts";
import type { AnyFamily } from "./family.ts";
import { handoff } from "./handoff.ts";
import { rows, scopes, sharedScope, unions, windows } from "./memory.ts";
import { parities, phases } from "./phases.ts";
import { pipeline } from "./pipeline.ts";
import { slotRing } from "./rings.ts";
import { staging } from "./staging.ts";
import { takingTurns } from "./turns.ts";
import { product } from "./wgmma.ts";

const families: readonly AnyFamily[] = [
  ...[handoff, pipeline, product, staging, exchange, meeting, phases, parities],
  ...[peers, mailbox, multicast, sum, gather, turnTaking, counting],
  ...[slotRing, takingTurns],
  ...[windows, unions, scopes, sharedScope, rows],
];

const schedules = { schedules: takesAll ? 8 : 4, seed: 1 };

describe.each(families)("$name", (subject) => {
  const marked = markedLines(subject);

  test("is clean without a mistake", async () => {
    const { target, inputs, make } = subject;
    await checkKernel(make(), inputs, {
      ...schedules,
      ...(target !== undefined && { target }),
    });
  });

  test.each(Object.entries(subject.mistakes))("finds: %s", async (mistake, expectation) => {
    const { says = /./, or = [] } = expectation;
    const wanted = [expectation, ...or].map(({ code, at = mistake }) =>
      JSON.stringify([code, marked.get(at) ?? `lines marked ${at}`]),
    );
    for (const turn of turns(schedules)) {
      const findings = await findingsOf(subject, mistake, turn);
      const messages = findings.map(({ message }) => message).join("\n");
      const report = `${turn.schedule} schedule, seed ${turn.seed}:\n${messages}`;
      const named = findings.map((each) => JSON.stringify([each.code, namedLines(each, subject)]));
      expect(wanted, `${named.join(" ")}\n${report}`).toContainEqual(
        named.find((each) => wanted.includes(each)),
      );
      expect(messages, report).toMatch(says);
    }
  });
});

test("thirty mistakes of rings and turns are among them", () => {
  const mistakes = [slotRing, takingTurns].flatMap((subject) => Object.keys(subject.mistakes));
  expect(mistakes.length).toBeGreaterThanOrEqual(30);
});

test("every mark belongs to a mistake", () => {
  const marks = new Set(families.flatMap((subject) => [...markedLines(subject).keys()]));
  const wanted = families.flatMap(({ mistakes }) =>
    Object.entries(mistakes).flatMap(([name, expectation]) =>
      [expectation, ...(expectation.or ?? [])].map(({ at = name }) => at),
    ),
  );
  expect(marks).toEqual(new Set(wanted));
});
