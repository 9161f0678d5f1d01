#include "tools/sim/simulated_node.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"

namespace torpor::sim {
namespace {

using namespace scheduler;  // NOLINT: names of nearly all its events and actions follow

// A key names the GPU in its low bits.
constexpr unsigned kGpuBits = 8;

// Converts between places in SimulatedNode::gpus_ and the scheduler's GPU indices. Both count from
// 0.
GpuIndex IndexOf(std::size_t gpu) { return GpuIndex{static_cast<std::int32_t>(gpu)}; }
std::size_t PlaceOf(GpuIndex gpu) { return static_cast<std::size_t>(gpu.value); }

// Ids count from 1: 0 is the invalid id.
InstanceId InstanceOf(std::size_t function) { return InstanceId{function + 1}; }
std::size_t FunctionOf(InstanceId instance) { return static_cast<std::size_t>(instance.value - 1); }

}  // namespace

SimulatedNode::SimulatedNode(const Setting& setting, Timers& timers, Observer& observer)
    : setting_(setting),
      timers_(timers),
      observer_(observer),
      scheduler_(MakeScheduler(setting.system, setting.seed)) {
  AddModels();
  for (const NodeModel::Switch& entry : setting.model->switches) {
    switches_.push_back({SimulatedSwitch(entry.gpu_links, entry.bytes_per_s), 0});  // NOLINT
  }
  AddGpus(TimePoint{});
}

// Computes each model's transfer times and rests on the profiles' reference links once.
void SimulatedNode::AddModels() {
  const Profiles& profiles = *setting_.profiles;
  for (const ModelProfile& model : profiles.models) {
    ModelTimes times;
    times.resident = setting_.system.is_native ? model.native : model.resident;
    times.host_transfer = profiles.HostTransfer(model);
    times.host_rest = profiles.HostRest(model);
    times.peer_transfer = profiles.PeerTransfer(model);
    times.peer_rest = profiles.PeerRest(model);
    times_.push_back(times);  // NOLINT: a handful of them
  }
}

// All GPUs are up from the start and never fail.
void SimulatedNode::AddGpus(TimePoint now) {
  const std::vector<NodeModel::Gpu>& gpus = setting_.model->gpus;
  gpus_.resize(gpus.size());
  std::vector<BlockCache::Kind> kinds;
  for (const ModelProfile& model : setting_.profiles->models) {
    kinds.push_back({model.footprint, model.blocks});  // NOLINT: a handful of them
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    ExecutorUp event;
    event.gpu = IndexOf(i);
    event.capacity = gpus[i].capacity;
    event.sources = gpus[i].sources;
    event.pcie_switch = static_cast<int>(gpus[i].pcie_switch);
    if (setting_.system.has_single_pool) gpus_[i].block_cache.emplace(event.capacity, kinds);
    Tell(event, now);
  }
}

// The image has the full size before the first request.
void SimulatedNode::AddFunction(std::size_t function, TimePoint now) {
  const FunctionSpec& spec = (*setting_.functions)[function];
  const FunctionId id{function + 1};
  FunctionSet set;
  set.function = id;
  set.objective = {spec.deadline, setting_.profiles->percentile};
  if (setting_.system.is_keep_alive) set.keep_alive = spec.keep_alive;
  Tell(set, now);
  InstanceAdded added;
  added.instance = InstanceOf(function);
  added.function = id;
  added.keeps_replicas = setting_.keeps_replicas;
  added.is_constant = true;
  Tell(added, now);
  const ModelProfile& model = ModelOf(function);
  const Bytes bytes = setting_.system.is_native ? model.native_footprint : model.footprint;
  Tell(GrowthWanted{GrowthId{function + 1}, InstanceOf(function), bytes}, now);
}

// Counts the request as outstanding until EndExecution or a refusal.
void SimulatedNode::Arrive(RequestId request, std::size_t function, TimePoint now) {
  ++outstanding_;
  RequestArrived event;
  event.request = request;
  event.instance = InstanceOf(function);
  event.function = FunctionId{function + 1};
  Tell(event, now);
}

// Ignores a timer of an older switch generation and a kAllocated timer of a removed image: both
// mean that the transfer has changed or was cancelled since.
void SimulatedNode::Expire(const Timer& timer) {
  switch (timer.kind) {
    case Timer::Kind::kExecuted:
      return EndExecution(timer.place, timer.at);
    case Timer::Kind::kTransfersEnd:
      if (timer.key == switches_[timer.place].generation) EndTransfer(timer.place, timer.at);
      return;
    case Timer::Kind::kPeerArrived:
      return ImageHasArrived(timer.place, timer.key, timer.at);
    case Timer::Kind::kAllocated:
      for (Image& image : gpus_[timer.place].images) {
        if (image.key == timer.key) return BeginTransfer(timer.place, image, timer.at);
      }
      return;
    case Timer::Kind::kTurnedOver:
      return Tell(LeaseEnded{InstanceOf(timer.key)}, timer.at);
    case Timer::Kind::kLoaded:
      return Tell(SwapInDone{InstanceOf(timer.key), IndexOf(timer.place), true}, timer.at);
    case Timer::Kind::kWakeUp:
      return Tell(TimePassed{}, timer.at);
  }
}

// A request under way counts from now on only.
void SimulatedNode::BeginMeasurement(TimePoint now) {
  is_measuring_ = true;
  for (Gpu& gpu : gpus_) {
    gpu.busy = Duration::zero();
    if (gpu.execution.request) gpu.execution.granted = std::max(gpu.execution.granted, now);
  }
}

// Includes the time since the grant of a running request.
Duration SimulatedNode::BusyTime(std::size_t gpu, TimePoint now) const {
  const Execution& execution = gpus_[gpu].execution;
  return gpus_[gpu].busy + (execution.request ? now - execution.granted : Duration::zero());
}

// Not reentrant: an event that an action leads to waits in `untold_` until the actions before are
// done.
void SimulatedNode::Tell(Event event, TimePoint now) {
  untold_.push_back(std::move(event));
  if (is_telling_) return;
  is_telling_ = true;
  // Carrying out actions adds events.
  for (std::size_t i = 0; i < untold_.size(); ++i) {
    const Event next = std::move(untold_[i]);
    ++scheduler_events_;
    hash_.Add(next, now);
    for (const Action& action : scheduler_->OnEvent(next, now)) {
      hash_.Add(action);
      std::visit([&](const auto& a) { Do(a, now); }, action);
    }
  }
  untold_.clear();
  is_telling_ = false;
}

// Reports the swap-in as done at once and begins the transfer after the driver calls that a block
// cache needs, if any. Native systems start a container instead.
void SimulatedNode::Do(const SwapIn& action, TimePoint now) {
  if (setting_.system.is_native) return StartContainer(action, now);
  const std::size_t gpu = PlaceOf(action.gpu);
  Image image;
  image.key = (next_key_++ << kGpuBits) | gpu;
  image.function = FunctionOf(action.instance);
  image.path = action.source ? Path::kPeer : Path::kHost;
  if (action.source) image.source = PlaceOf(*action.source);
  image.drops_source = action.source && !action.keeps_source;
  gpus_[gpu].images.push_back(image);
  // Execution need not wait for all of the image.
  Tell(SwapInDone{action.instance, action.gpu, true}, now);
  std::optional<BlockCache>& cache = gpus_[gpu].block_cache;
  const std::uint32_t driver_calls =
      cache ? cache->Take((*setting_.functions)[image.function].model) : 0;
  if (driver_calls == 0) return BeginTransfer(gpu, gpus_[gpu].images.back(), now);
  SetTimer(now + driver_calls * setting_.profiles->driver_call, Timer::Kind::kAllocated, gpu,
           image.key);
}

// Containers of the warm-up count as deployed long ago: only the measured load sees cold starts.
void SimulatedNode::StartContainer(const SwapIn& action, TimePoint now) {
  if (!is_measuring_) return Tell(SwapInDone{action.instance, action.gpu, true}, now);
  const std::size_t function = FunctionOf(action.instance);
  SetTimer(now + ModelOf(function).cold_start, Timer::Kind::kLoaded, PlaceOf(action.gpu), function);
}

// A peer transfer has the NVLink's full bandwidth. A host transfer shares the PCIe switch, whose
// timer is therefore set anew.
void SimulatedNode::BeginTransfer(std::size_t gpu, Image& image, TimePoint now) {
  image.begun = now;
  const Bytes bytes = ModelOf(image.function).parameters;
  const NodeModel::Gpu& model = setting_.model->gpus[gpu];
  if (image.source) {
    const double seconds = static_cast<double>(bytes) / model.nvlink_bytes_per_s[*image.source];
    SetTimer(now + Duration(static_cast<std::int64_t>(seconds * 1e9)), Timer::Kind::kPeerArrived,
             gpu, image.key);
    return;
  }
  switches_[model.pcie_switch].links.Begin(image.key, model.place_behind_switch, bytes, now);
  SetSwitchTimer(model.pcie_switch, now);
}

// Invalidates earlier timers by a new generation. Sets no timer on an idle switch.
void SimulatedNode::SetSwitchTimer(std::size_t place, TimePoint now) {
  Switch& entry = switches_[place];
  ++entry.generation;
  if (const auto end = entry.links.NextEnd()) {
    SetTimer(std::max(end->at, now), Timer::Kind::kTransfersEnd, place, entry.generation);
  }
}

// The timer is of the transfer that ends first; transfers that end together have timers of their
// own.
void SimulatedNode::EndTransfer(std::size_t place, TimePoint now) {
  SimulatedSwitch& links = switches_[place].links;
  const SimulatedSwitch::TransferId key = links.NextEnd()->transfer;
  links.Remove(key, now);
  SetSwitchTimer(place, now);
  ImageHasArrived(key & ((1U << kGpuBits) - 1), key, now);
}

// Finishes the execution that waits for the image, then reports the arrival and, for a moved image,
// the swap-out at the source. Ignores an image removed meanwhile.
void SimulatedNode::ImageHasArrived(std::size_t gpu, std::uint64_t key, TimePoint now) {
  std::vector<Image>& images = gpus_[gpu].images;
  const auto found = std::find_if(images.begin(), images.end(),
                                  [&](const Image& image) { return image.key == key; });
  if (found == images.end()) return;
  found->has_arrived = true;
  const Image image = *found;
  Execution& execution = gpus_[gpu].execution;
  if (execution.waits_for_image && execution.function == image.function) {
    execution.waits_for_image = false;
    images.erase(found);
    FinishAt(gpu, EndAfterTransfer(execution, image, now));
  }
  Tell(ImageArrived{InstanceOf(image.function), IndexOf(gpu)}, now);
  if (image.drops_source) {
    Tell(SwapOutDone{InstanceOf(image.function), IndexOf(*image.source)}, now);
  }
}

// Cancels a transfer under way and completes at once.
void SimulatedNode::Do(const SwapOut& action, TimePoint now) {
  const std::size_t gpu = PlaceOf(action.gpu);
  std::vector<Image>& images = gpus_[gpu].images;
  const std::size_t function = FunctionOf(action.instance);
  const auto found = std::find_if(images.begin(), images.end(),
                                  [&](const Image& image) { return image.function == function; });
  if (found != images.end()) {
    const std::size_t place = setting_.model->gpus[gpu].pcie_switch;
    switches_[place].links.Remove(found->key, now);
    SetSwitchTimer(place, now);
    images.erase(found);
  }
  std::optional<BlockCache>& cache = gpus_[gpu].block_cache;
  if (cache) cache->Release((*setting_.functions)[function].model);
  // Models are only read: there is nothing to write back.
  Tell(SwapOutDone{action.instance, action.gpu}, now);
}

// Models are only read, so every write-back is clean at once.
void SimulatedNode::Do(const WriteBack& action, TimePoint now) {
  Tell(WriteBackDone{action.instance, action.gpu, true}, now);
}

// Aborts if the GPU already executes a request. Without a pending image the execution takes the
// resident time; otherwise ImageHasArrived sets the end.
void SimulatedNode::Do(const Grant& action, TimePoint now) {
  const std::size_t place = PlaceOf(action.gpu);
  Gpu& gpu = gpus_[place];
  TORPOR_CHECK(!gpu.execution.request);
  Execution& execution = gpu.execution;
  execution = {action.request, FunctionOf(action.instance), now, Path::kResident, false};
  const auto found = std::find_if(gpu.images.begin(), gpu.images.end(), [&](const Image& image) {
    return image.function == execution.function;
  });
  if (found != gpu.images.end()) {
    execution.path = found->path;
    execution.waits_for_image = !found->has_arrived;
    if (execution.waits_for_image) return;
    gpu.images.erase(found);
  }
  FinishAt(place, now + TimesOf(execution.function).resident);
}

// Pipelines execution and transfer by the profile's times for the image's path.
TimePoint SimulatedNode::EndAfterTransfer(const Execution& execution, const Image& image,
                                          TimePoint now) const {
  const ModelTimes& times = TimesOf(image.function);
  const bool is_from_host = image.path == Path::kHost;
  return ExecutionEnd(execution.granted, times.resident,
                      {image.begun, now, is_from_host ? times.host_transfer : times.peer_transfer},
                      is_from_host ? times.host_rest : times.peer_rest);
}

// Each function has one instance, and each GPU one request.
void SimulatedNode::FinishAt(std::size_t gpu, TimePoint at) {
  SetTimer(at, Timer::Kind::kExecuted, gpu, 0);
}

// Adds the execution to the GPU's busy time before the scheduler learns of the end.
void SimulatedNode::EndExecution(std::size_t gpu, TimePoint now) {
  const Execution ended = std::exchange(gpus_[gpu].execution, {});
  gpus_[gpu].busy += now - ended.granted;
  --outstanding_;
  observer_.OnServed(ended.request, gpu, ended.path, now);
  Tell(RequestGone{ended.request, Ending::kAnswered}, now);
}

// Leases end a turnover after the answer; containers of their own know no leases.
void SimulatedNode::Do(const Revoke& action, TimePoint now) {
  const Duration turnover =
      setting_.system.is_native ? Duration::zero() : setting_.profiles->turnover;
  if (turnover == Duration::zero()) return Tell(LeaseEnded{action.instance}, now);
  SetTimer(now + turnover, Timer::Kind::kTurnedOver, 0, FunctionOf(action.instance));
}

void SimulatedNode::Do(const Refuse& action, TimePoint) {
  --outstanding_;
  observer_.OnRefused(action.request);
}

// Wake-ups in the past are due now.
void SimulatedNode::Do(const WakeUp& action, TimePoint now) {
  SetTimer(std::max(action.when, now), Timer::Kind::kWakeUp, 0, 0);
}

const ModelProfile& SimulatedNode::ModelOf(std::size_t function) const {
  return setting_.profiles->models[(*setting_.functions)[function].model];
}

const SimulatedNode::ModelTimes& SimulatedNode::TimesOf(std::size_t function) const {
  return times_[(*setting_.functions)[function].model];
}

void SimulatedNode::SetTimer(TimePoint at, Timer::Kind kind, std::size_t place, std::uint64_t key) {
  timers_.Set({at, kind, setting_.index, static_cast<std::uint32_t>(place), key});
}

}  // namespace torpor::sim
