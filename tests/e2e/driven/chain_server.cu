// A function whose GPU memory holds a hash of all requests so far, for tests/e2e/replay_test.cc: no
// update may be lost, made twice or made out of order.
//   POST /chain {"value":[v],"steps":[n]}  mixes in v, n times  ->  {"sum":S}, the hash
//   POST /mapped {"value":[v],"steps":[n]} as one step of /chain with v twice, by a kernel that
//   reads pinned memory; answers after n milliseconds
// On the way a request uploads from pageable and from pinned memory, allocates and frees, downloads
// in the middle, records an event on a stream of its own, and fetches its result through pinned
// memory.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "examples/service/cuda_error.h"
#include "examples/service/endpoint.h"
#include "tests/e2e/driven/chain_numbers.h"
#include "tests/e2e/driven/sum_service.h"

namespace torpor::examples {
namespace {

using e2e::kChainBegin;
using e2e::kChainElements;
using e2e::kChainFactor;

constexpr int kBlocks = 16;
constexpr int kThreads = 256;
// A download in the middle of so many steps.
constexpr unsigned kStepsPerLook = 16;

__global__ void Mix(unsigned* hash, const unsigned* input, const unsigned* more, unsigned step) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kChainElements;
       i += gridDim.x * blockDim.x) {
    hash[i] = hash[i] * kChainFactor + input[i] + more[i] + step;
  }
}

class Chain {
 public:
  Chain() {
    const std::vector<unsigned> begin(kChainElements, kChainBegin);
    Check(cudaMalloc(&hash_, kBytes));
    Check(cudaMemcpy(hash_, begin.data(), kBytes, cudaMemcpyHostToDevice));
    Check(cudaMallocHost(&pinned_, kBytes));
    Check(cudaMallocHost(&result_, sizeof(*result_)));
    Check(cudaStreamCreate(&stream_));
    Check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
  }

  unsigned long long Extend(unsigned value, unsigned steps) {
    unsigned* input = nullptr;
    unsigned* more = nullptr;
    Check(cudaMalloc(&input, kBytes));
    Check(cudaMalloc(&more, kBytes));
    const std::vector<unsigned> values(kChainElements, value);
    Check(cudaMemcpy(input, values.data(), kBytes, cudaMemcpyHostToDevice));
    for (unsigned i = 0; i < kChainElements; ++i) pinned_[i] = value / 2;
    Check(cudaMemcpyAsync(more, pinned_, kBytes, cudaMemcpyHostToDevice, stream_));
    Check(cudaEventRecord(event_, stream_));
    Check(cudaStreamWaitEvent(nullptr, event_, 0));
    for (unsigned step = 0; step < steps; ++step) {
      Mix<<<kBlocks, kThreads>>>(hash_, input, more, step);
      if (step % kStepsPerLook == 0) Look();
    }
    Check(cudaGetLastError());
    const unsigned long long result = Fetch();
    // The program's own from here on: a replay must not write there again.
    *result_ = 0;
    Check(cudaFree(input));
    Check(cudaFree(more));
    return result;
  }

  unsigned long long ExtendMapped(unsigned value, unsigned milliseconds) {
    for (unsigned i = 0; i < kChainElements; ++i) pinned_[i] = value;
    Mix<<<kBlocks, kThreads>>>(hash_, pinned_, pinned_, 0);
    Check(cudaDeviceSynchronize());
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    while (std::chrono::steady_clock::now() < end) Look();
    return Fetch();
  }

 private:
  static constexpr std::size_t kBytes = kChainElements * sizeof(unsigned);

  void Look() {
    unsigned seen = 0;
    Check(cudaMemcpy(&seen, hash_, sizeof(seen), cudaMemcpyDeviceToHost));
  }

  unsigned long long Fetch() {
    Check(cudaMemcpyAsync(result_, hash_ + kChainElements / 2, sizeof(*result_),
                          cudaMemcpyDeviceToHost, nullptr));
    Check(cudaStreamSynchronize(nullptr));
    return *result_;
  }

  unsigned* hash_ = nullptr;
  unsigned* pinned_ = nullptr;
  unsigned* result_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
};

int Main(int argc, char** argv) {
  const Flags flags = ParseFlags(
      argc, argv, std::string("usage: chain_server [flags]\n") + kEndpointUsage, EndpointFlags());
  Chain chain;
  ServeSums(flags, [&](const SumRequest& request) -> std::optional<unsigned long long> {
    if (request.Is("/chain", "value") && request.Is("/chain", "steps")) {
      return chain.Extend(request.number("value"), request.number("steps"));
    }
    if (request.Is("/mapped", "value") && request.Is("/mapped", "steps")) {
      return chain.ExtendMapped(request.number("value"), request.number("steps"));
    }
    return std::nullopt;
  });
  return 0;
}

}  // namespace
}  // namespace torpor::examples

int main(int argc, char** argv) {
  return torpor::examples::RunProgram("chain_server", torpor::examples::Main, argc, argv);
}
