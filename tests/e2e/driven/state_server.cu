// A function that keeps a sum a number in GPU memory, for the scenarios of tests/e2e.
//   POST /add {"value":[v]}  adds v to every element  ->  {"sum":S}, of all elements
//   POST /work {"ms":[t]}    keeps the GPU busy for about that long, then answers like /add
//   POST /fault              a kernel writes where it may not
// With --lazy 1 it comes to CUDA only in its first request.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "examples/service/cuda_error.h"
#include "examples/service/endpoint.h"
#include "tests/e2e/driven/sum_service.h"

namespace torpor::examples {
namespace {

constexpr int kBlocks = 32;
constexpr int kThreads = 256;

__global__ void Add(unsigned* values, unsigned count, unsigned value) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    values[i] += value;
  }
}

__global__ void Sum(const unsigned* values, unsigned count, unsigned long long* total) {
  unsigned long long sum = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    sum += values[i];
  }
  atomicAdd(total, sum);
}

__global__ void Fault(unsigned* nowhere) { *nowhere = 1; }

class State {
 public:
  explicit State(int megabytes) : count_(static_cast<unsigned>(megabytes) << 18) {
    Check(cudaMalloc(&values_, count_ * sizeof(unsigned)));
    Check(cudaMalloc(&total_, sizeof(*total_)));
    Check(cudaMemset(values_, 0, count_ * sizeof(unsigned)));
    AddToAll(0);
  }

  unsigned long long AddToAll(unsigned value) {
    Add<<<kBlocks, kThreads>>>(values_, count_, value);
    Check(cudaMemsetAsync(total_, 0, sizeof(*total_)));
    Sum<<<kBlocks, kThreads>>>(values_, count_, total_);
    Check(cudaGetLastError());
    unsigned long long total = 0;
    Check(cudaMemcpy(&total, total_, sizeof(total), cudaMemcpyDeviceToHost));
    return total;
  }

  unsigned long long Work(std::chrono::milliseconds length) {
    const auto end = std::chrono::steady_clock::now() + length;
    while (std::chrono::steady_clock::now() < end) AddToAll(0);
    return AddToAll(0);
  }

  void WriteNowhere() {
    Fault<<<1, 1>>>(reinterpret_cast<unsigned*>(0x1234'5678'9000ULL));
    Check(cudaDeviceSynchronize());
  }

 private:
  const unsigned count_;
  unsigned* values_ = nullptr;
  unsigned long long* total_ = nullptr;
};

int Main(int argc, char** argv) {
  Flags known = EndpointFlags();
  known["megabytes"] = "16";
  known["lazy"] = "0";
  const Flags flags = ParseFlags(
      argc, argv,
      std::string("usage: state_server [--megabytes N] [--lazy 1] [flags]\n") + kEndpointUsage,
      known);
  const int megabytes = IntFlag(flags, "megabytes", 1, 1024);
  std::optional<State> state;
  if (IntFlag(flags, "lazy", 0, 1) == 0) state.emplace(megabytes);
  ServeSums(flags, [&](const SumRequest& request) -> std::optional<unsigned long long> {
    if (!state) state.emplace(megabytes);
    if (request.Is("/add", "value")) return state->AddToAll(request.number("value"));
    if (request.Is("/work", "ms")) {
      return state->Work(std::chrono::milliseconds(request.number("ms")));
    }
    if (!request.Is("/fault")) return std::nullopt;
    state->WriteNowhere();
    return 0;
  });
  return 0;
}

}  // namespace
}  // namespace torpor::examples

int main(int argc, char** argv) {
  return torpor::examples::RunProgram("state_server", torpor::examples::Main, argc, argv);
}
