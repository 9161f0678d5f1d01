// A function with a model of many allocations, which it uses in an order of the request's choice.
//   POST /run {"stride":[s]}    sums up all layers, 0, s, 2s, ... of their number  ->  {"sum":S}
//   POST /follow {"layer":[n]}  sums up one layer, found by a pointer in GPU memory
//   POST /add {"value":[v]}     adds v to every element, last layer first; answers like /run
#include <optional>
#include <string>
#include <vector>

#include "examples/service/cuda_error.h"
#include "examples/service/endpoint.h"
#include "tests/e2e/driven/sum_service.h"

namespace torpor::examples {
namespace {

constexpr unsigned kLayers = 24;  // whose number every stride that is no multiple of 2 or 3 visits
constexpr unsigned kElements = 1u << 19;  // of a layer: 2 MiB
constexpr int kBlocks = 16;
constexpr int kThreads = 256;

__global__ void Fill(unsigned* layer, unsigned value) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kElements;
       i += gridDim.x * blockDim.x) {
    layer[i] = value;
  }
}

__global__ void Add(unsigned* layer, unsigned value) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kElements;
       i += gridDim.x * blockDim.x) {
    layer[i] += value;
  }
}

__device__ void AddUp(const unsigned* layer, unsigned long long* total) {
  unsigned long long sum = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kElements;
       i += gridDim.x * blockDim.x) {
    sum += layer[i];
  }
  atomicAdd(total, sum);
}

__global__ void Sum(const unsigned* layer, unsigned long long* total) { AddUp(layer, total); }

__global__ void SumFollowing(unsigned* const* layers, unsigned which, unsigned long long* total) {
  AddUp(layers[which], total);
}

class Model {
 public:
  Model() : layers_(kLayers) {
    for (unsigned i = 0; i < kLayers; ++i) {
      Check(cudaMalloc(&layers_[i], kElements * sizeof(unsigned)));
      Fill<<<kBlocks, kThreads>>>(layers_[i], i);
    }
    Check(cudaMalloc(&table_, kLayers * sizeof(*table_)));
    Check(cudaMemcpy(table_, layers_.data(), kLayers * sizeof(*table_), cudaMemcpyHostToDevice));
    Check(cudaMalloc(&total_, sizeof(*total_)));
    Run(1);
  }

  unsigned long long Run(unsigned stride) {
    Check(cudaMemsetAsync(total_, 0, sizeof(*total_)));
    for (unsigned i = 0; i < kLayers; ++i) {
      Sum<<<kBlocks, kThreads>>>(layers_[i * stride % kLayers], total_);
    }
    return Total();
  }

  unsigned long long Follow(unsigned layer) {
    Check(cudaMemsetAsync(total_, 0, sizeof(*total_)));
    SumFollowing<<<kBlocks, kThreads>>>(table_, layer, total_);
    return Total();
  }

  void AddToAll(unsigned value) {
    for (unsigned i = kLayers; i-- > 0;) Add<<<kBlocks, kThreads>>>(layers_[i], value);
  }

 private:
  unsigned long long Total() {
    Check(cudaGetLastError());
    unsigned long long total = 0;
    Check(cudaMemcpy(&total, total_, sizeof(total), cudaMemcpyDeviceToHost));
    return total;
  }

  std::vector<unsigned*> layers_;
  unsigned** table_ = nullptr;
  unsigned long long* total_ = nullptr;
};

int Main(int argc, char** argv) {
  const Flags flags = ParseFlags(
      argc, argv, std::string("usage: layers_server [flags]\n") + kEndpointUsage, EndpointFlags());
  Model model;
  ServeSums(flags, [&](const SumRequest& request) -> std::optional<unsigned long long> {
    if (request.Is("/run", "stride")) return model.Run(request.number("stride"));
    if (request.Is("/follow", "layer")) return model.Follow(request.number("layer") % kLayers);
    if (!request.Is("/add", "value")) return std::nullopt;
    model.AddToAll(request.number("value"));
    return model.Run(1);
  });
  return 0;
}

}  // namespace
}  // namespace torpor::examples

int main(int argc, char** argv) {
  return torpor::examples::RunProgram("layers_server", torpor::examples::Main, argc, argv);
}
