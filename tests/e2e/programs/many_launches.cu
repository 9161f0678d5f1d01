// Many small launches with arguments of all kinds: batches fill, and order is kept.
#include "tests/e2e/programs/check.h"

struct Arguments {
  char tag;
  double weight;
  short steps[5];
};

__global__ void Step(unsigned long long* state, int number, Arguments arguments, bool last) {
  unsigned long long value = *state;
  value = value * 6'364'136'223'846'793'005ULL + static_cast<unsigned>(number) +
          static_cast<unsigned>(arguments.tag);
  value ^= static_cast<unsigned long long>(arguments.weight) +
           static_cast<unsigned>(arguments.steps[number % 5]);
  *state = last ? ~value : value;
}

int main() {
  constexpr int kLaunches = 20'000;
  unsigned long long* device = nullptr;
  CUDA(cudaMalloc(&device, sizeof(*device)));
  CUDA(cudaMemset(device, 0, sizeof(*device)));
  const Arguments arguments = {'t', 1e6, {1, 20, 300, 4000, 5}};
  unsigned long long expected = 0;
  for (int i = 0; i < kLaunches; ++i) {
    const bool last = i == kLaunches - 1;
    Step<<<1, 1>>>(device, i, arguments, last);
    expected = expected * 6'364'136'223'846'793'005ULL + static_cast<unsigned>(i) + 't';
    expected ^= 1'000'000ULL + static_cast<unsigned>(arguments.steps[i % 5]);
    if (last) expected = ~expected;
  }
  CUDA(cudaGetLastError());
  unsigned long long result = 0;
  CUDA(cudaMemcpy(&result, device, sizeof(result), cudaMemcpyDeviceToHost));
  REQUIRE(result == expected);
  return Pass();
}
