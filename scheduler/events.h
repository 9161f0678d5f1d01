#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/units.h"

// What the scheduler is told and what it tells. All sizes are those of images as they occupy a
// GPU, that is whole chunks.
namespace torpor::scheduler {

// One growth of an image that waits for its room.
using GrowthId = Id<struct GrowthTag>;

// What an operator registers: has an objective and instances.
using FunctionId = Id<struct FunctionTag>;

// Who pays for functions.
using TenantId = Id<struct TenantTag>;

// One request that is late costs as many in time as 1/(1 - percentile): with more nines the counts
// would say nothing any more.
inline constexpr double kMaxPercentile = 0.9999;

// Of tenants: no share is beyond measure, and none so small that it never comes up.
inline constexpr double kMinWeight = 0.001;
inline constexpr double kMaxWeight = 1000;

// GPUs that an instance may hold beside the first.
inline constexpr int kMaxSecondaryShards = 15;

// A function complies while at least `percentile` of its requests are answered within `deadline` of
// their arrival (section 5.2 of the paper).
struct Objective {
  Duration deadline = Duration::max();
  double percentile = 0.98;  // above 0, at most kMaxPercentile

  bool operator==(const Objective&) const = default;
};

// --- Events -------------------------------------------------------------------------------------

// An executor serves. All of `capacity` is empty. From the GPUs of `sources`, the fastest first,
// images come faster than from the host. GPUs with the same `pcie_switch` share the way to the
// host.
struct ExecutorUp {
  GpuIndex gpu;
  Bytes capacity = 0;
  std::vector<GpuIndex> sources{};
  std::optional<int> pcie_switch{};
};

// An executor has gone with everything on its GPU: images, swaps, the lease if there was one (no
// LeaseEnded follows). Requests that were granted on it come again, or RequestGone says what has
// become of them; others wait on.
struct ExecutorDown {
  GpuIndex gpu;
};

// Tenants that wait for GPUs share their time by weight, from kMinWeight to kMaxWeight.
struct TenantSet {
  TenantId tenant;
  double weight = 1;
};

// A function and what it is to reach, before its first instance; or it has changed.
struct FunctionSet {
  FunctionId function;
  Objective objective{};
  int priority = 0;             // requests of a higher one go first
  std::size_t max_waiting = 0;  // further requests are refused; 0: any number
  TenantId tenant{};            // none: of all functions without one
  Duration keep_alive{};        // where memory is kept only so long after a request; 0: for ever
};

// Must come before anything else about the instance. Of one that runs on several GPUs at a time,
// each further GPU has an image of its own, which is known by an id of its own: a secondary shard.
// Its image is swapped, grows and shrinks like any other; requests, grants, revokes and ends of
// leases name the instance only, and are for all of its GPUs.
struct InstanceAdded {
  InstanceId instance;
  int max_in_flight = 1;  // explicit requests under one lease
  std::vector<InstanceId> secondary_shards{};
  FunctionId function{};        // none: a function of its own, without an objective
  bool keeps_replicas = false;  // nothing changes its image: copies on several GPUs stay the same
};

// A request for an instance, or, where that is none, for any instance of the function. Implicit: a
// program outside of any request wants a GPU; its lease is revoked as soon as somebody else has use
// for the GPU.
struct RequestArrived {
  RequestId request;
  InstanceId instance;
  TimePoint deadline = TimePoint::max();  // max(): the objective's, from the arrival
  bool is_implicit = false;
  FunctionId function{};
  std::optional<TimePoint> arrival{};  // earlier than now: it was granted before and lost its GPU
};

// How a request has ended. Against its function's objective count those that were answered, in time
// or not, and as missed those that failed or were lost; of those that were cancelled only what was
// late already.
enum class Ending {
  kAnswered,
  kFailed,     // its server was down, broke off, or answered with an error of its own
  kCancelled,  // by its caller
  kLost,       // with its lease, because the executor has died
};

// The request is over, or is no longer wanted. When the last request of a lease has gone, the lease
// is revoked. Of an implicit request that was granted nothing is said but its lease's end.
struct RequestGone {
  RequestId request;
  Ending ending = Ending::kCancelled;
};

// Answers SwapIn. `ok` false: nothing of the image is on the GPU.
struct SwapInDone {
  InstanceId instance;
  GpuIndex gpu;
  bool ok = true;
};

// All of an image is on the GPU, for which execution need not have waited: the links are free
// again. Nobody waits for it; without it the links count as busy until the lease's first request is
// over.
struct ImageArrived {
  InstanceId instance;
  GpuIndex gpu;
};

// Answers SwapOut, and SwapIn for its source: the GPU holds nothing of the image any more.
struct SwapOutDone {
  InstanceId instance;
  GpuIndex gpu;
};

// Answers WriteBack. `is_clean`: all that the GPU had changed is in the host's image now; else
// there is more to write back, and the scheduler asks again if there is still nothing better to do.
struct WriteBackDone {
  InstanceId instance;
  GpuIndex gpu;
  bool is_clean = true;
};

// The lease has ended, for whatever reason: the GPU is free for another. What is said of requests
// that were granted under it is as with ExecutorDown.
struct LeaseEnded {
  InstanceId instance;
};

// The image is to grow. Answered by exactly one AllowGrowth or RefuseGrowth.
struct GrowthWanted {
  GrowthId growth;
  InstanceId instance;
  Bytes bytes = 0;
};

// The image has become smaller, on its GPU too.
struct ImageShrunk {
  InstanceId instance;
  Bytes bytes = 0;
};

// An administrator wants the image on that GPU, or on any, before a request comes for it. A hint:
// requests go first, and it waits until there is room, or can be by evicting what nobody uses;
// until then nothing is evicted for it. It is forgotten as soon as the image comes there, a request
// has the instance, or it is refused by RefuseLoad. To come there counts as a use of the image.
struct LoadWanted {
  InstanceId instance;
  std::optional<GpuIndex> gpu;
};

// An administrator wants the image off all GPUs. Nothing happens to an image that is in use or that
// is still coming.
struct EvictionWanted {
  InstanceId instance;
};

// A pinned image is evicted only where all others together leave too little room.
struct PinChanged {
  InstanceId instance;
  bool is_pinned = false;
};

// The moment that WakeUp asked for.
struct TimePassed {};

using Event =
    std::variant<ExecutorUp, ExecutorDown, TenantSet, FunctionSet, InstanceAdded, RequestArrived,
                 RequestGone, SwapInDone, ImageArrived, SwapOutDone, WriteBackDone, LeaseEnded,
                 GrowthWanted, ImageShrunk, LoadWanted, EvictionWanted, PinChanged, TimePassed>;

// --- Actions, to be carried out in their order --------------------------------------------------

// Bring the image to the GPU. Room for it is set aside. With a source: from the image there, once
// what that GPU changed has been written back; then, or if the swap-in fails, drop the image from
// the source. Beside SwapInDone that is answered by a SwapOutDone, whichever comes first. Where
// `keeps_source`, nothing is written back or dropped, and there is no SwapOutDone.
struct SwapIn {
  InstanceId instance;
  GpuIndex gpu;
  std::optional<GpuIndex> source{};
  bool keeps_source = false;
};

enum class SwapOutReason { kMemoryFull, kMove, kRequested, kKeepAliveOver };

// Write back what the GPU changed, then drop the image from it. The instance holds no lease.
struct SwapOut {
  InstanceId instance;
  GpuIndex gpu;
  SwapOutReason reason = SwapOutReason::kMemoryFull;
};

// Write back some of what the GPU changed; the image stays. The GPU has nothing else to do, but a
// swap or a grant may follow before this is answered: it waits, so that a part must be small.
struct WriteBack {
  InstanceId instance;
  GpuIndex gpu;
};

// The image is resident: the instance has a lease on the GPU until LeaseEnded, and on those of its
// secondary_shards, in their order. `joins`: the request runs under the lease that the instance
// already has.
struct Grant {
  RequestId request;
  InstanceId instance;
  GpuIndex gpu;
  bool joins = false;
  std::vector<GpuIndex> secondary_gpus;
};

// The instance shall give its lease back; LeaseEnded says when it has. Once a lease.
struct Revoke {
  InstanceId instance;
};

enum class Refusal {
  kTooLarge,    // the image is larger than any GPU of the node
  kSwapFailed,  // the image could not be brought to the GPU
  kNoRoom,      // nothing is evicted, and no GPU has room
  kQueueFull,   // as many requests wait already as may
  kTooLate,     // it could no longer be answered within its deadline
};

// The request will not run. It is forgotten.
struct Refuse {
  RequestId request;
  Refusal reason = Refusal::kTooLarge;
};

// Room is set aside wherever the image is resident.
struct AllowGrowth {
  GrowthId growth;
};

// The grown image would fit no GPU of the node, or not the GPU it runs on.
struct RefuseGrowth {
  GrowthId growth;
};

enum class LoadRefusal {
  kNoGpu,       // the GPU does not serve, or none does
  kTooFewGpus,  // the instance needs several at a time
  kTooLarge,    // the image is larger than the GPU, or any
  kNoRoom,      // nothing is evicted, and no GPU has room
  kInUse,       // a request has it on another GPU
  kSwapFailed,  // the image could not be brought to the GPU, or that has gone
};

// The image will not be loaded ahead of its requests. The wish is forgotten.
struct RefuseLoad {
  InstanceId instance;
  LoadRefusal reason = LoadRefusal::kNoGpu;
};

// Send TimePassed at `when` (or later), whatever else happens until then.
struct WakeUp {
  TimePoint when;
};

using Action = std::variant<SwapIn, SwapOut, WriteBack, Grant, Revoke, Refuse, AllowGrowth,
                            RefuseGrowth, WakeUp, RefuseLoad>;
using Actions = std::vector<Action>;

}  // namespace torpor::scheduler
