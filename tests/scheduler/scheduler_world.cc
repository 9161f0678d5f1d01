#include "tests/scheduler/scheduler_world.h"

#include <iterator>

#include "scheduler/event_log.h"

namespace torpor::scheduler {
namespace {

Options IdleSoon(Options options) {
  options.idle_write_back = std::chrono::milliseconds(15);
  return options;
}

}  // namespace

SchedulerWorld::SchedulerWorld(Shape shape, Choose choose)
    : shape_(std::move(shape)),
      choose_(std::move(choose)),
      scheduler_(std::move(MakeSetup(shape_.setup)->policies),
                 IdleSoon(MakeSetup(shape_.setup)->options)) {
  if (shape_.log) {
    const Options options = IdleSoon(MakeSetup(shape_.setup)->options);
    *shape_.log = Encode(EventLogHeader{shape_.setup, 0, options}) + '\n';
  }
  for (int i = 0; i < shape_.gpus; ++i) {
    is_up_[GpuIndex{i}] = true;
    Tell(Up(GpuIndex{i}));
  }
  Tell(TenantSet{TenantId{1}, 2.5});
  for (int i = 1; i <= shape_.instances; ++i) AddInstance(i);
  for (const auto& [member, leader] : leader_) members_.push_back(member);
}

void SchedulerWorld::AddInstance(int number) {
  const InstanceId id{static_cast<std::uint64_t>(number)};
  instances_.push_back(id);
  leader_[id] = id;
  // The first two are one function's.
  const FunctionId function{std::max(id.value, std::uint64_t{2})};
  functions_.push_back({.function = function,
                        .objective = {.deadline = std::chrono::milliseconds(100)},
                        .priority = number / 4,
                        .max_waiting = 30,
                        .tenant = TenantId{id.value % 3},
                        .keep_alive = std::chrono::seconds(number % 2)});
  Tell(functions_.back());
  InstanceAdded added{id, 1 + number % 3, {}, function};
  if (number == shape_.instances && shape_.gpus > 1) {
    added.companions.push_back(InstanceId{id.value + 1});
    leader_[added.companions.back()] = id;
  } else {
    added.keeps_replicas = shape_.keeps_replicas;
  }
  Tell(added);
}

std::string SchedulerWorld::Step() {
  now_ += std::chrono::milliseconds(Below(20));
  switch (Below(14)) {
    case 0:
    case 1:
    case 2:
      Arrive();
      break;
    case 3:
    case 4:
      EndSomeRequest();
      break;
    case 5:
      EndSomeLease();
      break;
    case 6:
      GrowOrShrink();
      break;
    case 7:
      if (Below(8) == 0) BreakOrMendSomeGpu();
      if (Below(8) == 0) ChangeSomeFunction();
      break;
    case 8:
      Tell(TimePassed{});
      break;
    case 9:
      GiveSomeHint();
      break;
    case 10:
      CompleteSomeWriteBack();
      break;
    default:
      CompleteSomeSwap();
      break;
  }
  return error_;
}

std::string SchedulerWorld::Finish() {
  for (auto& [gpu, is_up] : is_up_) {
    if (is_up) continue;
    is_up = true;
    Tell(Up(gpu));
  }
  // Every turn completes something; the bound is far above what all requests need.
  for (int turn = 0; turn < 100'000 && error_.empty(); ++turn) {
    now_ += std::chrono::seconds(1);
    if (waiting_.empty() && leases_.empty() && growths_.empty()) return error_;
    Tell(TimePassed{});
    CompleteSomeSwap();
    CompleteSomeWriteBack();
    EndSomeRequest();
    EndSomeLease();
  }
  if (error_.empty()) Fail("somebody waits for ever");
  return error_;
}

ExecutorUp SchedulerWorld::Up(GpuIndex gpu) const {
  ExecutorUp up{gpu, shape_.gpu_bytes, {}};
  // Of each pair of neighbours one reaches the other.
  if (gpu.value > 0) up.sources.push_back(GpuIndex{gpu.value - 1});
  return up;
}

void SchedulerWorld::Tell(const Event& event) {
  if (shape_.log) *shape_.log += Encode(event, now_) + '\n';
  for (const Action& action : scheduler_.OnEvent(event, now_)) {
    if (shape_.log) *shape_.log += Encode(action, now_) + '\n';
    std::visit([this](const auto& a) { Obey(a); }, action);
  }
  CheckCapacity();
}

void SchedulerWorld::Obey(const SwapIn& action) {
  if (!is_up_[action.gpu]) Fail("swap-in on a GPU that is down");
  for (auto& [place, image] : images_) {
    if (place.first != action.instance || shape_.keeps_replicas) continue;
    const bool is_source = action.source == place.second && image.state == Image::kPresent;
    if (!is_source) Fail("swap-in of an image that is somewhere");
    image.state = Image::kLeaving;
  }
  if (action.source && !images_.count({action.instance, *action.source})) {
    Fail("the source has no image");
  }
  if (action.keeps_source) readers_[{action.instance, *action.source}].insert(action.gpu);
  images_[{action.instance, action.gpu}] = {image_bytes_[action.instance], Image::kComing};
  CheckCapacity();
}

void SchedulerWorld::Obey(const SwapOut& action) {
  const auto image = images_.find({action.instance, action.gpu});
  if (image == images_.end() || image->second.state != Image::kPresent) {
    return Fail("swap-out of what is not there");
  }
  const auto lease = leases_.find(leader_.at(action.instance));
  if (lease != leases_.end() && lease->second.gpus.count(action.gpu))
    Fail("swap-out under a lease");
  if (!readers_[{action.instance, action.gpu}].empty()) Fail("swap-out of what is read");
  image->second.state = Image::kLeaving;
}

void SchedulerWorld::Obey(const WriteBack& action) {
  if (images_.count({action.instance, action.gpu}) == 0) Fail("writes back what is not there");
  for (const auto& [place, image] : images_) {
    const bool is_swapping = image.state != Image::kPresent;
    if (place.second == action.gpu && is_swapping) Fail("writes back beside a swap");
  }
  for (const auto& [instance, lease] : leases_) {
    if (lease.gpus.count(action.gpu)) Fail("writes back while the GPU is leased");
  }
  // A lease may have come between the last one and its answer.
  write_backs_.insert({action.instance, action.gpu});
}

void SchedulerWorld::Obey(const Grant& action) {
  const auto request = waiting_.find(action.request);
  if (request == waiting_.end()) return Fail("grant of an unknown request");
  const auto check = [this](InstanceId member, GpuIndex gpu) {
    const auto image = images_.find({member, gpu});
    const bool is_there = image != images_.end() && image->second.state == Image::kPresent;
    if (!is_there) Fail("grant without image");
  };
  check(action.instance, action.gpu);
  std::set<GpuIndex> gpus{action.gpu};
  for (const GpuIndex gpu : action.companion_gpus) {
    check(InstanceId{action.instance.value + gpus.size()}, gpu);
    if (!gpus.insert(gpu).second) Fail("one GPU for two members");
  }
  ++grants_;
  if (action.joins) {
    const auto lease = leases_.find(action.instance);
    if (lease == leases_.end() || lease->second.is_revoked) return Fail("joins no lease");
    lease->second.requests.insert(action.request);
  } else {
    if (leases_.count(action.instance)) Fail("two leases of an instance");
    for (const auto& [instance, lease] : leases_) {
      for (const GpuIndex gpu : gpus) {
        if (lease.gpus.count(gpu)) Fail("two leases on a GPU");
      }
    }
    leases_[action.instance] = {gpus, request->second.is_implicit, false, {action.request}};
  }
  waiting_.erase(request);
}

void SchedulerWorld::Obey(const Revoke& action) {
  const auto lease = leases_.find(action.instance);
  if (lease == leases_.end()) return Fail("revokes no lease");
  if (lease->second.is_revoked) Fail("revokes twice");
  if (!lease->second.is_implicit && !lease->second.requests.empty()) Fail("revokes what runs");
  lease->second.is_revoked = true;
}

void SchedulerWorld::Obey(const Refuse& action) {
  if (waiting_.erase(action.request) == 0) Fail("refuses an unknown request");
}

void SchedulerWorld::Obey(const AllowGrowth& action) {
  const auto growth = growths_.find(action.growth);
  if (growth == growths_.end()) return Fail("allows an unknown growth");
  image_bytes_[growth->second.instance] += growth->second.bytes;
  for (auto& [place, image] : images_) {
    if (place.first == growth->second.instance && image.state != Image::kLeaving) {
      image.bytes += growth->second.bytes;
    }
  }
  growths_.erase(growth);
  CheckCapacity();
}

void SchedulerWorld::Obey(const RefuseGrowth& action) {
  const auto growth = growths_.find(action.growth);
  if (growth == growths_.end()) return Fail("refuses an unknown growth");
  if (MakeSetup(shape_.setup)->options.evicts &&
      image_bytes_[growth->second.instance] + growth->second.bytes <= shape_.gpu_bytes) {
    Fail("refuses a growth that fits");
  }
  growths_.erase(growth);
}

void SchedulerWorld::Obey(const WakeUp& action) {
  if (action.when <= now_) Fail("wakes up in the past");
}

void SchedulerWorld::Fail(const std::string& what) {
  if (error_.empty()) error_ = what;
}

void SchedulerWorld::CheckCapacity() {
  std::map<GpuIndex, Bytes> used;
  for (const auto& [place, image] : images_) used[place.second] += image.bytes;
  for (const auto& [gpu, bytes] : used) {
    if (bytes > shape_.gpu_bytes) Fail("more images than the GPU holds");
  }
}

void SchedulerWorld::Arrive() {
  RequestArrived arrival{.request = RequestId{next_id_++},
                         .instance = instances_[Below(instances_.size())],
                         .is_implicit = Below(4) == 0};
  if (!arrival.is_implicit && arrival.instance.value <= 2) {
    arrival.instance = {};
    arrival.function = FunctionId{2};
  }
  waiting_[arrival.request] = arrival;
  Tell(arrival);
}

void SchedulerWorld::EndSomeRequest() {
  if (!waiting_.empty() && Below(8) == 0) {
    const RequestId gone = std::next(waiting_.begin(), Below(waiting_.size()))->first;
    waiting_.erase(gone);
    return Tell(RequestGone{gone});
  }
  if (leases_.empty()) return;
  Lease& lease = std::next(leases_.begin(), Below(leases_.size()))->second;
  if (lease.is_implicit || lease.requests.empty()) return;
  const RequestId gone = *lease.requests.begin();
  lease.requests.erase(gone);
  Tell(RequestGone{gone, Below(4) > 0});
}

void SchedulerWorld::EndSomeLease() {
  if (leases_.empty()) return;
  const auto lease = std::next(leases_.begin(), Below(leases_.size()));
  const bool may_end = lease->second.is_revoked || (lease->second.is_implicit && Below(4) == 0);
  if (!may_end) return;
  const InstanceId instance = lease->first;
  leases_.erase(lease);
  Tell(LeaseEnded{instance});
}

void SchedulerWorld::GrowOrShrink() {
  const InstanceId instance = members_[Below(members_.size())];
  if (Below(3) > 0) {
    const GrowthWanted growth{GrowthId{next_id_++}, instance,
                              Bytes{1} + Below(shape_.gpu_bytes / 4)};
    growths_[growth.growth] = growth;
    return Tell(growth);
  }
  Bytes& bytes = image_bytes_[instance];
  const Bytes less = Below(bytes + 1);
  bytes -= less;
  for (auto& [place, image] : images_) {
    const bool shrinks = place.first == instance && image.state != Image::kLeaving;
    if (shrinks) image.bytes -= std::min(image.bytes, less);
  }
  Tell(ImageShrunk{instance, less});
}

void SchedulerWorld::GiveSomeHint() {
  const InstanceId instance = instances_[Below(instances_.size())];
  // The last of these GPUs does not exist.
  const auto gpu = static_cast<int>(Below(is_up_.size() + 1));
  switch (Below(5)) {
    case 0:
      return Tell(EvictionWanted{instance});
    case 1:
      return Tell(PinChanged{instance, Below(2) == 0});
    case 2:
      return Tell(LoadWanted{instance, GpuIndex{gpu}});
    default:
      return Tell(LoadWanted{instance, std::nullopt});
  }
}

void SchedulerWorld::ChangeSomeFunction() {
  if (Below(4) == 0) return Tell(TenantSet{TenantId{Below(3)}, 0.5 + Below(4)});
  FunctionSet& function = functions_[Below(functions_.size())];
  switch (Below(3)) {
    case 0:
      function.priority = static_cast<int>(Below(3));
      break;
    case 1:
      function.tenant = TenantId{Below(3)};
      break;
    default:
      function.objective.deadline = std::chrono::milliseconds(50 + Below(100));
      break;
  }
  Tell(function);
}

void SchedulerWorld::CompleteSomeSwap() {
  std::vector<Place> moving;
  for (const auto& [place, image] : images_) {
    if (image.state != Image::kPresent) moving.push_back(place);
  }
  if (moving.empty()) return;
  const Place place = moving[Below(moving.size())];
  Image& image = images_[place];
  if (image.state == Image::kLeaving) {
    images_.erase(place);
    return Tell(SwapOutDone{place.first, place.second});
  }
  const bool is_ok = Below(16) > 0;
  for (auto& [source, readers] : readers_) {
    if (source.first == place.first) readers.erase(place.second);
  }
  image.state = Image::kPresent;
  if (!is_ok) {
    images_.erase(place);
  }
  Tell(SwapInDone{place.first, place.second, is_ok});
}

void SchedulerWorld::CompleteSomeWriteBack() {
  if (write_backs_.empty()) return;
  const Place place = *std::next(write_backs_.begin(), Below(write_backs_.size()));
  write_backs_.erase(place);
  Tell(WriteBackDone{place.first, place.second, Below(2) == 0});
}

void SchedulerWorld::BreakOrMendSomeGpu() {
  const auto gpu = std::next(is_up_.begin(), Below(is_up_.size()));
  gpu->second = !gpu->second;
  if (gpu->second) return Tell(Up(gpu->first));
  std::erase_if(images_, [&](const auto& entry) { return entry.first.second == gpu->first; });
  std::erase_if(readers_, [&](const auto& entry) { return entry.first.second == gpu->first; });
  for (auto& [source, readers] : readers_) readers.erase(gpu->first);
  std::erase_if(write_backs_, [&](const Place& place) { return place.second == gpu->first; });
  std::erase_if(leases_,
                [&](const auto& entry) { return entry.second.gpus.count(gpu->first) > 0; });
  Tell(ExecutorDown{gpu->first});
}

}  // namespace torpor::scheduler
