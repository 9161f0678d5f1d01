"""A state that each step replaces by a layer of it; on a GPU the steps are replays of one CUDA graph.

As a program: prints what the CPU computes, the first values of the state after each step.
"""

import json

import torch
from torch import nn

SEED = 20261123
ROWS, WIDTH = 4, 64
STEPS = 8
SHOWN = 16


class Recurrence:
    def __init__(self, device):
        torch.manual_seed(SEED)
        self.layer = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.Tanh(),
                                   nn.Linear(WIDTH, WIDTH)).to(device).eval()
        self.first = torch.randn(ROWS, WIDTH).to(device)
        self.state = self.first.clone()
        self.graph = None

    @torch.inference_mode()
    def start(self):
        """Begins again, with a graph that is captured anew where there is a GPU."""
        self.graph = self.capture() if self.first.is_cuda else None
        self.state.copy_(self.first)
        return self.step()

    @torch.inference_mode()
    def step(self):
        self.graph.replay() if self.graph else self.compute()
        return self.state.flatten()[:SHOWN].tolist()

    def compute(self):
        self.state.add_(self.layer(self.state))

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # libraries make what they need at their first use
            self.compute()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.compute()
        return graph


def main():
    recurrence = Recurrence("cpu")
    print(json.dumps([recurrence.start()] + [recurrence.step() for _ in range(STEPS - 1)]))


if __name__ == "__main__":
    main()
