#include "memory/trace/model_trace.h"

#include <list>
#include <random>

#include "base/check.h"
#include "memory/trace/caching_allocator.h"

namespace torpor::memory {
namespace {

using Kind = TraceEvent::Kind;

// Activations of a network of convolutions, per input.
std::vector<TensorGroup> ConvolutionActivations() {
  return {{2, 3200 * kKiB}, {8, 3136 * kKiB}, {8, 1568 * kKiB}, {12, 784 * kKiB}, {4, 392 * kKiB}};
}

// A ResNet with bottleneck blocks, `blocks` of them in the third stage.
std::vector<TensorGroup> ResNet(int blocks) {
  return {{10, 150 * kKiB},      {4, 1100 * kKiB},      {4 * blocks, 8 * kKiB},
          {blocks, 1024 * kKiB}, {blocks, 2304 * kKiB}, {blocks, 1024 * kKiB},
          {3, 4096 * kKiB},      {3, 9216 * kKiB},      {3, 4096 * kKiB},
          {1, 8192 * kKiB},      {1, 8000 * kKiB}};
}

std::vector<TensorGroup> DenseNet(int layers, Bytes bottleneck_bytes, Bytes classifier_bytes) {
  return {{layers, bottleneck_bytes},
          {layers, 144 * kKiB},
          {2 * layers, 4 * kKiB},
          {3, 1300 * kKiB},
          {1, classifier_bytes}};
}

// A random number generator with the same results on every platform.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  std::uint32_t Below(std::uint64_t end) { return static_cast<std::uint32_t>(random_() % end); }
  bool OneIn(std::uint64_t count) { return Below(count) == 0; }

 private:
  std::mt19937_64 random_;
};

// The process of one function.
struct Process {
  CachingAllocator allocator;
  Bytes bytes = 0;  // sum of its segments
  bool has_parameters = false;
  bool is_resident = false;
};

class TraceMaker {
 public:
  explicit TraceMaker(const ModelTraceOptions& options)
      : options_(options), draws_(options.seed), processes_(options.functions) {}

  AllocationTrace Make() {
    for (std::size_t request = 1; request <= options_.requests; ++request) {
      Serve(draws_.Below(options_.functions));
      if (request % options_.requests_per_idle == 0) Say(Kind::kIdle, 0);
    }
    return std::move(trace_);
  }

 private:
  void Say(Kind kind, std::uint32_t function, std::uint32_t block = 0, Bytes bytes = 0) {
    trace_.push_back({kind, function, block, bytes});
  }

  void Serve(std::uint32_t function) {
    Process& process = processes_[function];
    recent_.remove(function);
    recent_.push_front(function);
    if (!process.is_resident) {
      MakeRoom(process.bytes);
      process.is_resident = true;
      resident_bytes_ += process.bytes;
    }
    Say(Kind::kLoad, function);
    Run(function, process);
    for (const auto& segment : process.allocator.TakeNewSegments()) {
      MakeRoom(segment.bytes);
      process.bytes += segment.bytes;
      resident_bytes_ += segment.bytes;
      Say(Kind::kAllocate, function, segment.number, segment.bytes);
    }
    for (const auto& segment : process.allocator.TakeFreedSegments()) {
      process.bytes -= segment.bytes;
      resident_bytes_ -= segment.bytes;
      Say(Kind::kFree, function, segment.number);
    }
  }

  void Run(std::uint32_t function, Process& process) {
    const ModelShape& model = PaperModels()[function % PaperModels().size()];
    if (!process.has_parameters) {
      process.has_parameters = true;
      for (const TensorGroup& group : model.parameters) {
        for (int i = 0; i < group.count; ++i) process.allocator.Allocate(group.bytes);
      }
    }
    const Bytes inputs = 1 + draws_.Below(4);
    std::list<CachingAllocator::Tensor> live;
    for (const TensorGroup& group : model.activations) {
      for (int i = 0; i < group.count; ++i) {
        live.push_back(process.allocator.Allocate(group.bytes * inputs));
        if (live.size() <= 2) continue;
        process.allocator.Free(live.front());
        live.pop_front();
      }
    }
    for (const CachingAllocator::Tensor tensor : live) process.allocator.Free(tensor);
    if (draws_.OneIn(options_.requests_per_empty_cache)) process.allocator.EmptyCache();
  }

  // Evicts least recently used functions, except the function being served.
  void MakeRoom(Bytes bytes) {
    for (auto it = recent_.rbegin(); it != recent_.rend(); ++it) {
      if (resident_bytes_ + bytes <= options_.gpu_bytes) return;
      Process& process = processes_[*it];
      if (!process.is_resident || *it == recent_.front()) continue;
      process.is_resident = false;
      resident_bytes_ -= process.bytes;
      Say(Kind::kEvict, *it);
    }
  }

  const ModelTraceOptions options_;
  Draws draws_;
  std::vector<Process> processes_;
  std::list<std::uint32_t> recent_;  // the latest first
  Bytes resident_bytes_ = 0;
  AllocationTrace trace_;
};

}  // namespace

const std::vector<ModelShape>& PaperModels() {
  static const auto* const models = new std::vector<ModelShape>{
      {"DenseNet-169", 30, DenseNet(82, 400 * kKiB, 6656 * kKiB), ConvolutionActivations()},
      {"DenseNet-201", 36, DenseNet(98, 540 * kKiB, 7680 * kKiB), ConvolutionActivations()},
      {"Inception-v3",
       19,
       {{60, 500 * kKiB}, {20, 1700 * kKiB}, {8, 2600 * kKiB}, {180, 4 * kKiB}, {1, 8000 * kKiB}},
       ConvolutionActivations()},
      {"EfficientNet",
       17,
       {{60, 150 * kKiB}, {10, 700 * kKiB}, {150, 4 * kKiB}, {1, 5000 * kKiB}},
       ConvolutionActivations()},
      {"ResNet-50", 11, ResNet(6), ConvolutionActivations()},
      {"ResNet-101", 20, ResNet(23), ConvolutionActivations()},
      {"ResNet-152", 25, ResNet(36), ConvolutionActivations()},
      {"Bert-qa",
       42,
       {{1, 119 * kMiB}, {1, 2 * kMiB}, {96, 4 * kMiB}, {48, 16 * kMiB}, {384, 4 * kKiB}},
       {{24, 1536 * kKiB}, {24, 6 * kMiB}, {24, 9 * kMiB}}}};
  return *models;
}

AllocationTrace MakeModelTrace(const ModelTraceOptions& options) {
  TORPOR_CHECK(options.functions > 0);
  TORPOR_CHECK(options.requests_per_idle > 0);
  TORPOR_CHECK(options.requests_per_empty_cache > 0);
  return TraceMaker(options).Make();
}

}  // namespace torpor::memory
