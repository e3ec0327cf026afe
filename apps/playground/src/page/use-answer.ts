/** A question to the worker as state of a view: asked again when what it depends on changes. */
import { useEffect, useState } from "preact/hooks";
import type { Finding, QuestionName, Questions } from "../protocol.ts";
import { Unanswered } from "./runner.ts";
import type { Runner } from "./runner.ts";

export type Answer<T> =
  | { readonly kind: "asked" }
  | { readonly kind: "given"; readonly value: T }
  | { readonly kind: "failed"; readonly finding: Finding };

/** `key`: the number of the run and what is asked about; undefined asks nothing. */
export function useAnswer<N extends QuestionName>(
  runner: Runner,
  name: N,
  asks: Questions[N]["asks"],
  key: string | undefined,
): Answer<Questions[N]["gives"]> {
  const [answer, setAnswer] = useState<{
    readonly key: string | undefined;
    readonly answer: Answer<Questions[N]["gives"]>;
  }>();
  useEffect(() => {
    if (key === undefined) return undefined;
    let wanted = true;
    const give = (given: Answer<Questions[N]["gives"]>): void => {
      if (wanted) setAnswer({ key, answer: given });
    };
    runner.ask(name, asks).then(
      (value) => {
        give({ kind: "given", value });
      },
      (error: unknown) => {
        give({ kind: "failed", finding: findingOf(error) });
      },
    );
    return () => {
      wanted = false;
    };
  }, [runner, name, key]);
  return answer?.key === key && answer !== undefined ? answer.answer : { kind: "asked" };
}

function findingOf(error: unknown): Finding {
  if (error instanceof Unanswered) return error.finding;
  const summary = error instanceof Error ? error.message : String(error);
  return { code: "Error", title: "not answered", summary, line: undefined, notes: [] };
}
