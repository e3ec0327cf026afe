"""Serves one peer over pipes: a JSON object a line in, one a line out.

    {"do": "compile", "tasks": [{...}, ...]}                      {}
    {"do": "prepare", "task": {...}, "sets": 4, "launches": 50}   {"lanes": [{"name": ..., "how": ...}], "refused": [...]}
    {"do": "sample", "lane": 0}                                   {"milliseconds": 0.174}
    {"do": "forget"}                                              {}

A lane is one way in which the peer does the task. Between requests the peer leaves the GPU alone, so that rounds of
several processes can take turns. A task that the peer cannot do has no lanes, and says why. Peers that compile for long do so
for all tasks before the first one is prepared, on as many processors as there are; what does not compile is found out again when
it is prepared, and told there.
"""
import json
import os
import sys
import traceback


def serve(hello, prepare, compile=lambda tasks: None):
    # Libraries print to standard output as they like: answers have a channel of their own.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    answer = lambda value: print(json.dumps(value), file=answers, flush=True)
    answer(hello())
    lanes = []
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "compile":
                compile(request["tasks"])
                answer({})
            elif request["do"] == "prepare":
                lanes.clear()
                refused = []
                prepare(request["task"], request["sets"], request["launches"], lanes, refused)
                answer({"lanes": [{"name": lane.name, "how": lane.how} for lane in lanes], "refused": refused})
            elif request["do"] == "sample":
                answer({"milliseconds": lanes[request["lane"]].sample()})
            else:
                lanes.clear()
                import gc

                gc.collect()
                answer({})
        except Exception as error:
            traceback.print_exc()
            answer({"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"})


def group_sizes(task):
    """As the benchmark's own: equal, or each half of what is left."""
    m, groups = task["m"], task["groups"]
    if not task["halving"]:
        return [m // groups] * groups
    sizes = []
    for _ in range(groups - 1):
        sizes.append((m - sum(sizes)) // 2)
    return sizes + [m - sum(sizes)]


def why(error):
    """An error in one line."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200] if text else ''}"
