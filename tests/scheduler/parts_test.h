#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/gpu_images.h"
#include "scheduler/keep_alives.h"
#include "scheduler/request_queue.h"

namespace torpor::scheduler {

inline constexpr GpuIndex kHere{0};
inline constexpr GpuIndex kThere{1};

// The scheduler's books without a scheduler: a node made by hand, its requests and its images.
class PartsTest : public testing::Test {
 protected:
  struct Setting {
    std::unique_ptr<BindingPolicy> binding = MakeLateBinding();
    GpuImages::Options images{};
    TooLate too_late = TooLate::kServe;
  };

  PartsTest() : PartsTest(Setting{}) {}
  explicit PartsTest(Setting setting)
      : binding_(std::move(setting.binding)),
        queue_(node_, *policy_, *binding_, setting.too_late, outbox_),
        images_(node_, *eviction_, *binding_, queue_, setting.images, outbox_),
        keep_alives_(node_, images_, outbox_) {}

  Gpu& AddGpu(GpuIndex id, Bytes capacity, std::vector<GpuIndex> sources = {}) {
    Gpu& gpu = node_.gpus[id];
    gpu.id = id;
    gpu.is_up = true;
    gpu.capacity = capacity;
    gpu.sources = std::move(sources);
    return gpu;
  }
  // With secondary shards of the same size and the ids that follow.
  Instance& Add(std::uint64_t id, Bytes bytes, std::uint64_t secondary_shards = 0) {
    FunctionState& function = node_.functions[FunctionId{id}];
    function.id = FunctionId{id};
    function.instances.push_back(InstanceId{id});
    for (std::uint64_t i = 0; i <= secondary_shards; ++i) {
      Instance& shard = node_.instances[InstanceId{id + i}];
      shard.id = InstanceId{id + i};
      shard.function = function.id;
      shard.lead = InstanceId{id};
      shard.image.bytes = bytes;
      if (i > 0) node_.instances.at(shard.lead).secondary_shards.push_back(shard.id);
    }
    return instance(id);
  }
  // The image is on the GPU, and nothing is said of that.
  void Put(Instance& shard, GpuIndex gpu) {
    images_.SwapIn(shard, node_.gpus.at(gpu));
    images_.OnPresent(shard, gpu);
    node_.gpus.at(gpu).loading = {};
    outbox_.Take();
  }
  Request Wait(std::uint64_t id, const Instance& lead, TimePoint deadline = TimePoint::max()) {
    const Request request{.request = RequestId{id},
                          .instance = lead.id,
                          .turn = {.arrival = outbox_.now(), .sequence = id},
                          .deadline = deadline};
    queue_.Add(request);
    return request;
  }
  void Pass(Duration duration) { outbox_.Begin(outbox_.now() + duration); }

  // The only action since the last call, if there is one and it is a T.
  template <typename T>
  std::optional<T> Only() {
    const Actions actions = outbox_.Take();
    if (actions.size() != 1 || !std::holds_alternative<T>(actions[0])) return std::nullopt;
    return std::get<T>(actions[0]);
  }

  Instance& instance(std::uint64_t id) { return node_.instances.at(InstanceId{id}); }
  Gpu& gpu(GpuIndex id) { return node_.gpus.at(id); }

  NodeState node_;
  Outbox outbox_;
  std::unique_ptr<QueuePolicy> policy_ = MakeFifoQueue();
  std::unique_ptr<PlacementPolicy> placement_ = MakeResidentFirstPlacement();
  std::unique_ptr<EvictionPolicy> eviction_ = MakeLruEviction();
  std::unique_ptr<BindingPolicy> binding_;
  RequestQueue queue_;
  GpuImages images_;
  KeepAlives keep_alives_;
};

}  // namespace torpor::scheduler
