/** Every question that can be asked of a finished run, with what answers it; most load the compiler first. */
import { compiler, programs } from "../modules.ts";
import type { Answer, Answers } from "./answer.ts";
import { readValues } from "../values.ts";
import type { compiledAnswers } from "./compiled.ts";

function compiled<N extends keyof typeof compiledAnswers>(name: N): Answer<N> {
  return async (run, asks) => {
    const answer: Answer<N> = (await compiler()).compiledAnswers[name];
    return answer(run, asks);
  };
}

export const answers: Answers = {
  stages: compiled("stages"),
  notes: compiled("notes"),
  layouts: compiled("layouts"),
  elements: compiled("elements"),
  timeline: compiled("timeline"),
  trace: compiled("trace"),
  memory: compiled("memory"),
  cost: compiled("cost"),
  values: (run, asks) => {
    const array = run.arrays[asks.launch]?.find(({ name }) => name === asks.array);
    if (array === undefined) throw new Error("there is no such array");
    return readValues(array.value, asks);
  },
  graph: async (run) => {
    if (!("graph" in run) || run.graph === undefined) throw new Error("the program is no graph");
    return (await programs()).graphReport(run.graph, run.plan, run.lines);
  },
};
