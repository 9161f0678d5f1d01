#pragma once

#include <cstdint>
#include <map>
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

  TimePoint since{};       // the decision
  scheduler::Wait wait{};  // until then
  // When there was room, and its image was sent for; nothing: it was there.
  std::optional<TimePoint> swap_in{};
  SwapSource source = SwapSource::kResident;
  std::optional<GpuIndex> peer{};  // from which the image was to come
  // Behind the same PCIe switch, whose images came from the host at that time.
  std::vector<Neighbour> loading_nearby{};
  std::vector<std::string> evicted{};  // functions, to make room
};

// What kept a request from a GPU, from its arrival until it was decided on which one it runs; all
// that is not told apart here is that no GPU was free on which it may run.
struct Delay {
  Duration own_lease{};  // its function ran others of its requests
  Duration by_choice{};  // it had better wait for a busy GPU with its image than take a free one
  std::optional<GpuIndex> awaited{};  // that one, or the last of them
  Duration no_gpu{};
  bool has_revoked = false;       // a program outside of requests had to give a GPU back for it
  bool is_late = false;           // it was set aside: too late for its deadline
  bool is_beyond_rescue = false;  // its function was: those come last
  // Requests that got GPUs meanwhile, by function, of those that are remembered: who had come
  // earlier, and who came later and was put before it.
  std::map<std::string, std::uint64_t> earlier{};
  std::map<std::string, std::uint64_t> overtakers{};

  Duration all() const { return own_lease + by_choice + no_gpu; }
};

// How a request came to run where it did, and when. For who asks afterwards.
struct RequestStory {
  std::string id{};  // the caller's name for it
  std::string function{};
  Duration deadline{};
  TimePoint arrival{};
  std::uint64_t waiting_before = 0;               // requests that waited on the node when it came
  std::optional<scheduler::Standing> standing{};  // then
  Delay delay{};
  // Once it has a GPU.
  std::optional<GpuIndex> gpu{};
  Placement placement{};
  std::optional<TimePoint> joined{};   // a lease that its function had already
  std::optional<TimePoint> decided{};  // where it runs
  std::optional<TimePoint> granted{};
  // Once it is over.
  std::optional<TimePoint> ended{};
  scheduler::Ending ending = scheduler::Ending::kAnswered;
  std::string why{};  // it was not answered
  TimePoint as_of{};  // the end, or when this was asked for

  // How it counts against its function's objective (scheduler::Ending), or will if it is late
  // already. Nothing: not at all, or not yet.
  std::optional<bool> in_time() const {
    const bool is_late = as_of - arrival > deadline;
    if (is_late) return false;
    if (!ended || ending == scheduler::Ending::kCancelled) return std::nullopt;
    return ending == scheduler::Ending::kAnswered;
  }
};

}  // namespace torpor::server
