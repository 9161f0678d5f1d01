#include "bench/e2e/framework_script.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <sstream>
#include <vector>

#include "memory/trace/caching_allocator.h"

namespace torpor::bench {
namespace {

using memory::CachingAllocator;
using memory::TensorGroup;

// Of activations, at a time.
constexpr std::size_t kLive = 2;

class Framework {
 public:
  Framework(const memory::ModelShape& model, TensorCache cache) : cache_(cache) {
    for (const TensorGroup& group : model.parameters) {
      for (int i = 0; i < group.count; ++i) parameters_.push_back(Allocate(group.bytes));
    }
    for (const Tensor& parameter : parameters_) Say("upload", parameter);
    for (const TensorGroup& group : model.activations) {
      activations_.insert(activations_.end(), static_cast<std::size_t>(group.count), group.bytes);
    }
  }

  // Each activation is computed from the last ones and its share of the parameters.
  void Run() {
    std::deque<Tensor> live;
    std::size_t read = 0;
    for (std::size_t i = 0; i < activations_.size(); ++i) {
      live.push_back(Allocate(activations_[i]));
      const std::size_t due = parameters_.size() * (i + 1) / activations_.size();
      for (; read < due; ++read) Say("read", parameters_[read]);
      Say("write", live.back());
      if (live.size() <= kLive) continue;
      Free(live.front());
      live.pop_front();
    }
    for (const Tensor& tensor : live) Free(tensor);
  }

  void BeginRequest() { script_ << "request\n"; }
  std::string Script() const { return script_.str(); }

 private:
  struct Tensor {
    CachingAllocator::Tensor cached = 0;
    std::uint32_t block = 0;
    Bytes offset = 0;
    Bytes bytes = 0;
  };

  Tensor Allocate(Bytes bytes) {
    if (cache_ == TensorCache::kOff) {
      script_ << "allocate " << next_block_ << " " << bytes << "\n";
      return {.block = next_block_++, .bytes = bytes};
    }
    const CachingAllocator::Tensor tensor = allocator_.Allocate(bytes);
    for (const auto& segment : allocator_.TakeNewSegments()) {
      script_ << "allocate " << segment.number << " " << segment.bytes << "\n";
    }
    const CachingAllocator::Place place = allocator_.PlaceOf(tensor);
    return {tensor, place.segment, place.offset, bytes};
  }

  void Free(const Tensor& tensor) {
    if (cache_ == TensorCache::kOn) return allocator_.Free(tensor.cached);
    script_ << "free " << tensor.block << "\n";
  }

  void Say(const char* what, const Tensor& tensor) {
    script_ << what << " " << tensor.block << " " << tensor.offset << " " << tensor.bytes << "\n";
  }

  const TensorCache cache_;
  std::ostringstream script_;
  CachingAllocator allocator_;
  std::uint32_t next_block_ = 0;
  std::vector<Tensor> parameters_;
  std::vector<Bytes> activations_;
};

}  // namespace

std::string FrameworkScript(const memory::ModelShape& model, TensorCache cache) {
  Framework framework(model, cache);
  framework.Run();
  framework.BeginRequest();
  framework.Run();
  return framework.Script();
}

}  // namespace torpor::bench
