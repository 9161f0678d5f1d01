// State that only the GPU writes survives pauses between bursts of work, in which the GPU may
// be taken away and given back elsewhere.
#include <unistd.h>

#include <vector>

#include "tests/e2e/programs/check.h"

constexpr int kCount = 3 << 20;

struct Node {
  Node* next;
  unsigned value;
};

__global__ void Link(Node* nodes, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) nodes[i] = {&nodes[(i + 7) % count], static_cast<unsigned>(i)};
}

// Device pointers inside device memory must stay good.
__global__ void Advance(Node* nodes, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) nodes[i].value += nodes[i].next - nodes > i ? 1U : 2U;
}

int main() {
  Node* nodes = nullptr;
  CUDA(cudaMalloc(&nodes, kCount * sizeof(Node)));
  Link<<<(kCount + 255) / 256, 256>>>(nodes, kCount);
  constexpr int kBursts = 4;
  for (int burst = 0; burst < kBursts; ++burst) {
    Advance<<<(kCount + 255) / 256, 256>>>(nodes, kCount);
    CUDA(cudaDeviceSynchronize());
    usleep(100'000);
  }
  std::vector<Node> result(kCount);
  CUDA(cudaMemcpy(result.data(), nodes, kCount * sizeof(Node), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    const unsigned step = i + 7 < kCount ? 1 : 2;
    REQUIRE(result[i].value == static_cast<unsigned>(i) + kBursts * step);
    REQUIRE(result[i].next == nodes + (i + 7) % kCount);
  }
  return Pass();
}
