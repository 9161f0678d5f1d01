#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/units.h"

// Events that the scheduler is told, and actions that it answers with. Sizes are bytes of GPU
// memory as images occupy it: whole chunks.
namespace torpor::scheduler {

// A growth of an image, from GrowthWanted to the answer.
using GrowthId = Id<struct GrowthTag>;

// A function as the operator registers it, with an objective and instances.
using FunctionId = Id<struct FunctionTag>;

// The owner of functions, who has a share of the GPUs' time.
using TenantId = Id<struct TenantTag>;

// A late request costs 1/(1 - percentile) requests in time. With more nines the required request
// count would carry no information.
inline constexpr double kMaxPercentile = 0.9999;

// Bounds of a tenant's weight. The lower one keeps every tenant's turn within reach.
inline constexpr double kMinWeight = 0.001;
inline constexpr double kMaxWeight = 1000;

// GPUs of an instance beside the lead shard's.
inline constexpr int kMaxSecondaryShards = 15;

// A function complies while at least `percentile` of the requests are answered within `deadline` of
// arrival (section 5.2 of the paper).
struct Objective {
  Duration deadline = Duration::max();
  double percentile = 0.98;  // above 0, at most kMaxPercentile

  bool operator==(const Objective&) const = default;
};

// --- Events -------------------------------------------------------------------------------------

// An executor serves, with `capacity` bytes, all empty. Images come faster from the GPUs in
// `sources` (fastest first) than from the host. GPUs with the same `pcie_switch` share the link to
// the host.
struct ExecutorUp {
  GpuIndex gpu;
  Bytes capacity = 0;
  std::vector<GpuIndex> sources{};
  std::optional<int> pcie_switch{};
};

// An executor has gone with everything on the GPU: images, swaps and the lease, for which no
// LeaseEnded follows. Requests granted there come again (RequestArrived) or end (RequestGone);
// waiting requests wait on.
struct ExecutorDown {
  GpuIndex gpu;
};

// One of a GPU's executors, the one of these instances, has gone or is not there yet, and others
// serve there: the GPU holds nothing of these instances' images. A lease and swaps of theirs end as
// after ExecutorDown, and none of them goes there before InstancesServed or ExecutorUp.
struct ImagesLost {
  GpuIndex gpu;
  std::vector<InstanceId> instances{};  // lead shards
};

// The executor of these instances is there, or may be asked for.
struct InstancesServed {
  GpuIndex gpu;
  std::vector<InstanceId> instances{};  // lead shards
};

// Sets a tenant's weight, from kMinWeight to kMaxWeight. Waiting tenants share GPU time by weight.
// A tenant of weight 1, as a new one is, costs no memory: so that a removed one may be forgotten.
struct TenantSet {
  TenantId tenant;
  double weight = 1;
};

// Registers a function before the first instance, or changes one.
struct FunctionSet {
  FunctionId function;
  Objective objective{};
  int priority = 0;             // requests of a higher one go first
  std::size_t max_waiting = 0;  // more requests are refused; 0: any number
  TenantId tenant{};            // invalid: the tenant of all functions without an owner
  Duration keep_alive{};        // how long images stay on GPUs after a request; 0: for ever
};

// Adds an instance. Precedes every other event about the instance. An instance with several GPUs
// has a secondary shard for each GPU after the first, with an id and an image of its own. Images of
// shards are swapped, grow and shrink alone; requests, grants, revokes and ends of leases name the
// instance and cover all shards.
struct InstanceAdded {
  InstanceId instance;
  int max_in_flight = 1;  // explicit requests under one lease
  std::vector<InstanceId> secondary_shards{};
  FunctionId function{};        // invalid: a function of its own, without an objective
  bool keeps_replicas = false;  // an image that another GPU fetches stays where it was, too
  bool is_constant = false;     // no run's changes to the image count
};

// An instance's ability to serve requests, the best first.
enum class Health {
  kServing,   // has a session that can serve
  kUnproven,  // has no session, and may never have one
  kDown,      // its server takes no requests
  kLeaving,   // is to be removed
};

// An instance's health, which is kServing at first, has changed. Requests for any instance of the
// function go to instances of the best health, and so do those that wait already.
struct HealthChanged {
  InstanceId instance;
  Health health = Health::kServing;
};

// Removes an instance: without requests, a lease, growths, or images on their way
// (Scheduler::MayRemove).
struct InstanceRemoved {
  InstanceId instance;
};

// Removes a function without instances, and all that was learned of it.
struct FunctionRemoved {
  FunctionId function;
};

// A request for an instance, or for any instance of `function` if `instance` is invalid. Implicit:
// a program outside of any request wants a GPU. The lease of an implicit request is revoked as soon
// as a request or another program has use for the GPU.
struct RequestArrived {
  RequestId request;
  InstanceId instance{};
  TimePoint deadline = TimePoint::max();  // max(): the objective's deadline after the arrival
  bool is_implicit = false;
  FunctionId function{};
  // Of the first time, if the request comes again: it has lost or left its GPU, or leaves the
  // instance that it waits for.
  std::optional<TimePoint> arrival{};
};

// How a request has ended. Answered requests count against the objective, in time or late; failed
// and lost requests count as missed; a cancelled request counts as missed if the deadline had
// passed.
enum class Ending {
  kAnswered,
  kFailed,     // the function's server was down, broke off, or answered with an error
  kCancelled,  // by the caller
  kLost,       // with the lease, because the executor has died
};

// The request is over or no longer wanted. A lease is revoked when the last request under it has
// gone. A granted implicit request has no RequestGone: only the lease's end is told.
struct RequestGone {
  RequestId request;
  Ending ending = Ending::kCancelled;
};

// Answers SwapIn. `ok` false: the GPU holds nothing of the image.
struct SwapInDone {
  InstanceId instance;
  GpuIndex gpu;
  bool ok = true;
};

// The last byte of an image has come, perhaps after execution began: the links are free again.
// Optional: without this event the links count as busy until the lease's first request is over.
struct ImageArrived {
  InstanceId instance;
  GpuIndex gpu;
};

// Answers SwapOut, and SwapIn for the source: the GPU holds nothing of the image any more.
struct SwapOutDone {
  InstanceId instance;
  GpuIndex gpu;
};

// Answers WriteBack. `is_clean`: the host's image has all of the GPU's changes. Otherwise the
// scheduler asks again while the GPU stays idle.
struct WriteBackDone {
  InstanceId instance;
  GpuIndex gpu;
  bool is_clean = true;
};

// The lease has ended, for whatever reason: the GPU is free. Requests under the lease end or come
// again as after ExecutorDown.
struct LeaseEnded {
  InstanceId instance;
};

// The image is to grow. Answered by exactly one AllowGrowth or RefuseGrowth.
struct GrowthWanted {
  GrowthId growth;
  InstanceId instance;
  Bytes bytes = 0;
};

// The image has become smaller by `bytes`, on the GPU too.
struct ImageShrunk {
  InstanceId instance;
  Bytes bytes = 0;
};

// An administrator's request to bring the image to `gpu`, or to any GPU, before a request needs the
// image. Requests go first. The load waits until the image has room, or evicting unused images
// makes enough; nothing is evicted for a load before. The scheduler forgets the load when the image
// is sent for, when a request has the instance, or with RefuseLoad. Arriving counts as a use of the
// image.
struct LoadWanted {
  InstanceId instance;
  std::optional<GpuIndex> gpu;
};

// An administrator's request to evict the image from all GPUs. Ignored for copies in use or coming.
struct EvictionWanted {
  InstanceId instance;
};

// The executor of these instances on the GPU makes place for another one: evicts their images
// there. Ignored for copies in use or coming.
struct ImagesUnwanted {
  GpuIndex gpu;
  std::vector<InstanceId> instances{};  // lead shards
};

// An administrator's pin. A pinned image is evicted only where evicting all others leaves too
// little room.
struct PinChanged {
  InstanceId instance;
  bool is_pinned = false;
};

// The host's image has left memory for a disk, or has come back. A run that brings the image from
// there takes longer, and teaches nothing of other runs.
struct ImageSpilled {
  InstanceId instance;
  bool is_on_disk = true;
};

// The time of the last WakeUp has come.
struct TimePassed {};

using Event =
    std::variant<ExecutorUp, ExecutorDown, ImagesLost, InstancesServed, TenantSet, FunctionSet,
                 InstanceAdded, HealthChanged, InstanceRemoved, FunctionRemoved, RequestArrived,
                 RequestGone, SwapInDone, ImageArrived, SwapOutDone, WriteBackDone, LeaseEnded,
                 GrowthWanted, ImageShrunk, LoadWanted, EvictionWanted, ImagesUnwanted, PinChanged,
                 ImageSpilled, TimePassed>;

// --- Actions, to be carried out in their order --------------------------------------------------

// Bring the image to `gpu`, where room is set aside. With a source: copy the image from there,
// after writing back the changes of the source's GPU; then, or if the swap-in fails, drop the image
// from the source. Answered by SwapInDone and, for the source, by SwapOutDone, in any order.
// `keeps_source`: nothing is dropped, and no SwapOutDone follows.
struct SwapIn {
  InstanceId instance;
  GpuIndex gpu;
  std::optional<GpuIndex> source{};
  bool keeps_source = false;
};

enum class SwapOutReason { kMemoryFull, kMove, kRequested, kKeepAliveOver };

// Write the GPU's changes back, then drop the image. The instance holds no lease.
struct SwapOut {
  InstanceId instance;
  GpuIndex gpu;
  SwapOutReason reason = SwapOutReason::kMemoryFull;
};

// Write back a part of the GPU's changes and keep the image. The GPU is idle, but a swap or a grant
// may follow before the answer and waits meanwhile: a part must be small.
struct WriteBack {
  InstanceId instance;
  GpuIndex gpu;
};

// The image is resident, and the instance has a lease on `gpu` and on the GPUs of the secondary
// shards (in their order) until LeaseEnded. If a lease elsewhere has changed the image since the
// copy there was in step, the changes come first. `joins`: the request runs under the lease that
// exists.
struct Grant {
  RequestId request;
  InstanceId instance;
  GpuIndex gpu;
  bool joins = false;
  std::vector<GpuIndex> secondary_gpus;
};

// The instance shall give the lease back; LeaseEnded confirms. Sent once a lease.
struct Revoke {
  InstanceId instance;
};

enum class Refusal {
  kTooLarge,    // the image is larger than any GPU of the node
  kSwapFailed,  // the image could not be brought to the GPU
  kNoRoom,      // nothing is evicted, and no GPU has room
  kQueueFull,   // as many requests wait already as may
  kTooLate,     // an answer within the deadline is no longer possible
};

// The request will not run, and is forgotten.
struct Refuse {
  RequestId request;
  Refusal reason = Refusal::kTooLarge;
};

// The image may grow: room is set aside wherever the image is resident.
struct AllowGrowth {
  GrowthId growth;
};

// The grown image would fit none of the node's GPUs so far, or not the GPU that runs the instance.
struct RefuseGrowth {
  GrowthId growth;
};

enum class LoadRefusal {
  kNoGpu,       // the GPU, or every GPU, is down
  kTooFewGpus,  // fewer GPUs serve than the instance has shards
  kTooLarge,    // the image is larger than the GPU, or than every GPU
  kNoRoom,      // nothing is evicted, and no GPU has room
  kInUse,       // a request uses the image on another GPU
  kSwapFailed,  // the image could not be brought to the GPU, or the executor has gone
};

// The image will not be loaded ahead of requests. The load is forgotten.
struct RefuseLoad {
  InstanceId instance;
  LoadRefusal reason = LoadRefusal::kNoGpu;
};

// Send TimePassed at `when` or later, whatever else happens before.
struct WakeUp {
  TimePoint when;
};

using Action = std::variant<SwapIn, SwapOut, WriteBack, Grant, Revoke, Refuse, AllowGrowth,
                            RefuseGrowth, WakeUp, RefuseLoad>;
using Actions = std::vector<Action>;

}  // namespace torpor::scheduler
