// A function with a model of many allocations, which it uses in an order of the request's choice.
//   POST /run {"stride":[s]}    sums up all layers, 0, s, 2s, ... of their number  ->  {"sum":S}
//   POST /first {}              sums up the first layer, and is answered while others still arrive
//   POST /follow {"layer":[n]}  sums up one layer, found by a pointer in GPU memory
//   POST /add {"value":[v]}     adds v to every element, last layer first; answers like /run
//   POST /upload {"value":[v]}  uploads other values to the first layer, then v to every element;
//                               answers like /first
#include <optional>
#include <string>
#include <vector>

#include "examples/service/cuda_error.h"
#include "examples/service/endpoint.h"
#include "tests/e2e/driven/sum_service.h"

namespace torpor::examples {
namespace {

constexpr const char* kUsage = R"(usage: layers_server [flags]
  --layers N      (default 24; every stride that is no multiple of 2 or 3 visits all)
  --mebibytes N   of a layer (default 2)
)";

constexpr int kBlocks = 16;
constexpr int kThreads = 256;

__global__ void Fill(unsigned* layer, unsigned elements, unsigned value) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < elements;
       i += gridDim.x * blockDim.x) {
    layer[i] = value;
  }
}

__global__ void Add(unsigned* layer, unsigned elements, unsigned value) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < elements;
       i += gridDim.x * blockDim.x) {
    layer[i] += value;
  }
}

__device__ void AddUp(const unsigned* layer, unsigned elements, unsigned long long* total) {
  unsigned long long sum = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < elements;
       i += gridDim.x * blockDim.x) {
    sum += layer[i];
  }
  atomicAdd(total, sum);
}

__global__ void Sum(const unsigned* layer, unsigned elements, unsigned long long* total) {
  AddUp(layer, elements, total);
}

__global__ void SumFollowing(unsigned* const* layers, unsigned which, unsigned elements,
                             unsigned long long* total) {
  AddUp(layers[which], elements, total);
}

class Model {
 public:
  Model(unsigned layers, unsigned elements) : layers_(layers), elements_(elements) {
    for (unsigned i = 0; i < layers; ++i) {
      Check(cudaMalloc(&layers_[i], elements_ * sizeof(unsigned)));
      Fill<<<kBlocks, kThreads>>>(layers_[i], elements_, i);
    }
    Check(cudaMalloc(&table_, layers * sizeof(*table_)));
    Check(cudaMemcpy(table_, layers_.data(), layers * sizeof(*table_), cudaMemcpyHostToDevice));
    Check(cudaMalloc(&total_, sizeof(*total_)));
    Run(1);
  }

  unsigned long long Run(unsigned stride) {
    Check(cudaMemsetAsync(total_, 0, sizeof(*total_)));
    for (unsigned i = 0; i < layers_.size(); ++i) {
      Sum<<<kBlocks, kThreads>>>(layers_[i * stride % layers_.size()], elements_, total_);
    }
    return Total();
  }

  unsigned long long First() {
    Check(cudaMemsetAsync(total_, 0, sizeof(*total_)));
    Sum<<<kBlocks, kThreads>>>(layers_[0], elements_, total_);
    return Total();
  }

  unsigned long long Follow(unsigned layer) {
    Check(cudaMemsetAsync(total_, 0, sizeof(*total_)));
    SumFollowing<<<kBlocks, kThreads>>>(table_, layer % layers_.size(), elements_, total_);
    return Total();
  }

  void AddToAll(unsigned value) {
    for (unsigned i = static_cast<unsigned>(layers_.size()); i-- > 0;) {
      Add<<<kBlocks, kThreads>>>(layers_[i], elements_, value);
    }
  }

  void UploadTwice(unsigned value) {
    for (const unsigned each : {value + 1, value}) {
      const std::vector<unsigned> layer(elements_, each);
      Check(cudaMemcpy(layers_[0], layer.data(), elements_ * sizeof(unsigned),
                       cudaMemcpyHostToDevice));
    }
  }

 private:
  unsigned long long Total() {
    Check(cudaGetLastError());
    unsigned long long total = 0;
    Check(cudaMemcpy(&total, total_, sizeof(total), cudaMemcpyDeviceToHost));
    return total;
  }

  std::vector<unsigned*> layers_;
  const unsigned elements_;  // of a layer
  unsigned** table_ = nullptr;
  unsigned long long* total_ = nullptr;
};

int Main(int argc, char** argv) {
  Flags known = EndpointFlags();
  known["layers"] = "24";
  known["mebibytes"] = "2";
  const Flags flags = ParseFlags(argc, argv, std::string(kUsage) + kEndpointUsage, known);
  const int mebibytes = IntFlag(flags, "mebibytes", 1, 1024);
  Model model(static_cast<unsigned>(IntFlag(flags, "layers", 1, 4096)),
              static_cast<unsigned>(mebibytes) << 18);
  ServeSums(flags, [&](const SumRequest& request) -> std::optional<unsigned long long> {
    if (request.Is("/run", "stride")) return model.Run(request.number("stride"));
    if (request.Is("/first")) return model.First();
    if (request.Is("/follow", "layer")) return model.Follow(request.number("layer"));
    if (request.Is("/upload", "value")) {
      model.UploadTwice(request.number("value"));
      return model.First();
    }
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
