"""Work of PyTorch and Triton as CUDA graphs, or call by call where a graph cannot hold it, and the arrays it is done on."""
import math

import torch

dtypes = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}

# The GPU waits for so many cycles before a graph, about a tenth of a millisecond, or does one graph more where that takes less milliseconds
# than these: a short one is to find the GPU as its own launches leave it.
waiting_cycles = 200_000
short_graph = 1


def normal(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype)


def product_arrays(task):
    """a of [m, k], b of [k, n] by rows ("kn") or by columns ("nk"), and the result."""
    m, n, k, dtype = task["m"], task["n"], task["k"], dtypes[task["dtype"]]
    b = normal(k, n, dtype=dtype) if task["b"] == "kn" else normal(n, k, dtype=dtype).t()
    return normal(m, k, dtype=dtype), b, torch.empty(m, n, device="cuda", dtype=dtype)


class GraphLane:
    """Launches over sets of arrays in turn, recorded once and replayed for every sample."""

    def __init__(self, name, calls, launches, note=""):
        self.name = name
        self.how = f"CUDA graph of {launches} launches{note}"
        self.launches = launches
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for call in calls:
                call()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        self.kept = calls
        with torch.cuda.graph(self.graph):
            for index in range(launches):
                calls[index % len(calls)]()
        self.lasts = math.inf
        self.sample()

    def sample(self):
        """As src/bench/bench.ts has it: the GPU is busy already when it is asked for the graph."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if self.lasts < short_graph:
            self.graph.replay()
        else:
            torch.cuda._sleep(waiting_cycles)
        start.record()
        self.graph.replay()
        end.record()
        end.synchronize()
        self.lasts = start.elapsed_time(end)
        return self.lasts / self.launches


class CallLane:
    """Launches over sets of arrays in turn, each called anew: for work that waits for the host inside, which a graph cannot record.
    An attempt to record it would leave PyTorch's random numbers in a state that fails every later operation."""

    def __init__(self, name, calls, launches):
        self.name = name
        self.how = f"{launches} calls, in which the host waits"
        self.launches = launches
        self.calls = calls
        self.sample()

    def sample(self):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for index in range(self.launches):
            self.calls[index % len(self.calls)]()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / self.launches
