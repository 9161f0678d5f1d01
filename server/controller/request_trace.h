#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "scheduler/policies.h"
#include "server/controller/model/instance_placement.h"

namespace torpor::server {

// The delays of a request between its arrival and the scheduler's choice of a GPU.
struct Delay {
  Duration own_lease{};  // its function ran other requests
  Duration by_choice{};  // waited for a busy GPU with its image, though another GPU was free
  std::optional<GpuIndex> awaited{};  // the busy GPU of `by_choice`, the last if several
  Duration no_gpu{};                  // no suitable GPU was free
  bool has_revoked = false;           // a program outside of requests had to give a GPU back for it
  bool is_late = false;               // set aside: too late for its deadline
  bool is_beyond_rescue = false;      // its function's requests come last
  // Remembered requests that got GPUs meanwhile, by function: earlier arrivals, and later arrivals
  // that went first.
  std::map<std::string, std::uint64_t> earlier{};
  std::map<std::string, std::uint64_t> overtakers{};

  Duration all() const { return own_lease + by_choice + no_gpu; }
};

// How a request came to run where it did, and when. A plain record.
struct RequestTrace {
  std::string id{};  // the caller's name for the request
  std::string function{};
  std::string instance{};  // once granted, if the function has several
  Duration deadline{};
  TimePoint arrival{};
  std::uint64_t waiting_before = 0;               // requests waiting on the node at `arrival`
  std::optional<scheduler::Standing> standing{};  // at `arrival`
  Delay delay{};
  // Once the request has a GPU.
  std::optional<GpuIndex> gpu{};
  InstancePlacement placement{};
  std::optional<TimePoint> joined{};   // joined a running lease of its function
  std::optional<TimePoint> decided{};  // the scheduler chose its GPU
  std::optional<TimePoint> granted{};
  // Once the request is over.
  std::optional<TimePoint> ended{};
  scheduler::Ending ending = scheduler::Ending::kAnswered;
  std::string why{};  // reason for no answer; empty if answered
  TimePoint as_of{};  // the end, or the time of the question

  // Whether the request counts as in time for its function's objective (scheduler::Ending); false
  // as soon as it is late. Returns nullopt if the request does not count, or not yet.
  std::optional<bool> in_time() const {
    const bool is_late = as_of - arrival > deadline;
    if (is_late) return false;
    if (!ended || ending == scheduler::Ending::kCancelled) return std::nullopt;
    return ending == scheduler::Ending::kAnswered;
  }
};

}  // namespace torpor::server
