#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "scheduler/policies.h"
#include "server/controller/request_broker.h"

namespace torpor::server {

// How an instance came to the GPU that it has.
struct Placement {
  struct Neighbour {
    GpuIndex gpu;
    std::string function;
  };

  TimePoint since{};  // the decision
  // When there was room, and its image was sent for; nothing: it was there.
  std::optional<TimePoint> swap_in{};
  SwapSource source = SwapSource::kResident;
  std::optional<GpuIndex> peer{};  // from which the image was to come
  // Behind the same PCIe switch, whose images came from the host at that time.
  std::vector<Neighbour> loading_nearby{};
  std::vector<std::string> evicted{};  // functions, to make room
};

// How a request came to run where it did, and when. For who asks afterwards.
struct RequestStory {
  std::string id{};  // the caller's name for it
  std::string function{};
  Duration deadline{};
  TimePoint arrival{};
  std::uint64_t waiting_before = 0;               // requests that waited on the node when it came
  std::optional<scheduler::Standing> standing{};  // then
  // Once it has a GPU.
  std::optional<GpuIndex> gpu{};
  Placement placement{};
  bool has_joined = false;  // a lease that its function had already
  std::optional<TimePoint> granted{};
  // Once it is over.
  std::optional<TimePoint> ended{};
  scheduler::Ending ending = scheduler::Ending::kAnswered;
  std::string why{};  // it was not answered
  TimePoint as_of{};  // the end, or when this was asked for
};

}  // namespace torpor::server
