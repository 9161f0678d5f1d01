#include "tests/scheduler/scheduler_world.h"

#include <algorithm>
#include <iterator>

#include "scheduler/event_log.h"

namespace torpor::scheduler {
namespace {

// Of the first two instances.
constexpr FunctionId kSharedFunction{2};

SchedulerOptions IdleSoon(SchedulerOptions options) {
  options.idle_write_back = std::chrono::milliseconds(15);
  return options;
}

}  // namespace

SchedulerWorld::SchedulerWorld(Shape shape, Choose choose)
    : shape_(std::move(shape)),
      choose_(std::move(choose)),
      keeps_replicas_(shape_.keeps_replicas && !MakeSetup(shape_.setup)->policies.binding->binds()),
      scheduler_(PoliciesOf(shape_, [this](const std::string& what) { Fail(what); }),
                 IdleSoon(MakeSetup(shape_.setup)->options)) {
  if (shape_.log) {
    const SchedulerOptions options = IdleSoon(MakeSetup(shape_.setup)->options);
    *shape_.log = Encode(EventLogHeader{shape_.setup, 0, options}) + '\n';
  }
  for (int i = 0; i < shape_.gpus; ++i) {
    is_up_[GpuIndex{i}] = true;
    Tell(Up(GpuIndex{i}));
  }
  Tell(TenantSet{TenantId{1}, 2.5});
  for (int i = 1; i <= shape_.instances; ++i) AddInstance(i);
  for (const auto& [shard, lead] : lead_) shards_.push_back(shard);
}

Policies SchedulerWorld::PoliciesOf(const Shape& shape, const CheckedQueue::OnFault& on_fault) {
  Policies policies = std::move(MakeSetup(shape.setup)->policies);
  policies.queue = std::make_unique<CheckedQueue>(std::move(policies.queue), on_fault);
  return policies;
}

void SchedulerWorld::AddInstance(int number) {
  const InstanceId id{static_cast<std::uint64_t>(number)};
  instances_.push_back(id);
  lead_[id] = id;
  const FunctionId function{std::max(id.value, kSharedFunction.value)};
  functions_.push_back({.function = function,
                        .objective = {.deadline = std::chrono::milliseconds(100)},
                        .priority = number / 4,
                        .max_waiting = 30,
                        .tenant = TenantId{id.value % 3},
                        .keep_alive = std::chrono::seconds(number % 2)});
  Tell(functions_.back());
  InstanceAdded added{id, 1 + number % 3, {}, function};
  if (number == shape_.instances && shape_.gpus > 1) {
    added.secondary_shards.push_back(InstanceId{id.value + 1});
    lead_[added.secondary_shards.back()] = id;
  } else {
    added.keeps_replicas = shape_.keeps_replicas;
    added.is_constant = shape_.keeps_replicas && number % 2 == 0;
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
      if (Below(8) == 0) LoseSomeDomain();
      if (Below(4) == 0) ServeFirstUnserved();
      if (Below(8) == 0) Tell(ImagesUnwanted{SomeGpu(), {SomeLead()}});
      if (Below(8) == 0) ChangeSomeFunction();
      break;
    case 8:
      Tell(TimePassed{});
      break;
    case 9:
      SendSomeAdminRequest();
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
  // From one grant to the next: what is in the way leaves, the image comes, the request runs, its
  // lease ends; and all of that twice where a part of it was for another.
  constexpr std::size_t kTurnsAnAnswer = 10;
  // Longer than any lease must be left alone.
  constexpr Duration kTurn = std::chrono::milliseconds(150);
  for (auto& [gpu, is_up] : is_up_) {
    if (is_up) continue;
    is_up = true;
    Forget(gpu);
    Tell(Up(gpu));
  }
  while (!unserved_.empty()) ServeFirstUnserved();
  const std::size_t turns = kTurnsAnAnswer * (1 + waiting_.size() + lost_.size() + growths_.size());
  for (std::size_t turn = 0; turn < turns && error_.empty(); ++turn) {
    if (waiting_.empty() && lost_.empty() && growths_.empty()) return error_;
    now_ += kTurn;
    Tell(TimePassed{});
    CompleteEverything();
  }
  if (!waiting_.empty())
    Fail("request " + std::to_string(waiting_.begin()->value) + " waits for ever");
  if (!growths_.empty()) {
    Fail("growth " + std::to_string(growths_.begin()->first.value) + " waits for ever");
  }
  return error_;
}

void SchedulerWorld::CompleteEverything() {
  for (const Place& place : MovingImages()) CompleteSwap(place, true);
  for (const Place& place : std::set<Place>(write_backs_)) CompleteWriteBack(place, true);
  while (!lost_.empty()) EndSomeLostRequest();
  std::vector<RequestId> running;
  std::vector<InstanceId> revoked;
  for (const auto& [instance, lease] : leases_) {
    if (lease.is_revoked) revoked.push_back(instance);
    if (lease.is_implicit) continue;
    running.insert(running.end(), lease.requests.begin(), lease.requests.end());
  }
  for (const RequestId request : running) EndRequest(request, Ending::kAnswered);
  for (const InstanceId instance : revoked) EndLease(instance);
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
    std::visit([this](const auto& a) { Apply(a); }, action);
  }
  CheckCapacity();
  CheckAccounts();
}

void SchedulerWorld::Apply(const SwapIn& action) {
  if (!is_up_[action.gpu]) Fail("swap-in on a GPU that is down");
  if (unserved_.count({lead_.at(action.instance), action.gpu}) > 0) {
    Fail("swap-in without the executor");
  }
  for (auto& [place, image] : images_) {
    if (place.first != action.instance || keeps_replicas_) continue;
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

void SchedulerWorld::Apply(const SwapOut& action) {
  const auto image = images_.find({action.instance, action.gpu});
  if (image == images_.end() || image->second.state != Image::kPresent) {
    return Fail("swap-out of what is not there");
  }
  const auto lease = leases_.find(lead_.at(action.instance));
  if (lease != leases_.end() && lease->second.gpus.count(action.gpu))
    Fail("swap-out under a lease");
  if (!readers_[{action.instance, action.gpu}].empty()) Fail("swap-out of what is read");
  image->second.state = Image::kLeaving;
}

void SchedulerWorld::Apply(const WriteBack& action) {
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

void SchedulerWorld::Apply(const Grant& action) {
  if (waiting_.count(action.request) == 0) return Fail("grant of an unknown request");
  Request& request = requests_.at(action.request);
  const auto check = [this](InstanceId shard, GpuIndex gpu) {
    const auto image = images_.find({shard, gpu});
    const bool is_there = image != images_.end() && image->second.state == Image::kPresent;
    if (!is_there) Fail("grant without image");
  };
  check(action.instance, action.gpu);
  std::set<GpuIndex> gpus{action.gpu};
  for (const GpuIndex gpu : action.secondary_gpus) {
    check(InstanceId{action.instance.value + gpus.size()}, gpu);
    if (!gpus.insert(gpu).second) Fail("one GPU for two shards");
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
    leases_[action.instance] = {gpus, request.is_implicit, false, {action.request}};
  }
  request.instance = action.instance;
  waiting_.erase(action.request);
}

void SchedulerWorld::Apply(const Revoke& action) {
  const auto lease = leases_.find(action.instance);
  if (lease == leases_.end()) return Fail("revokes no lease");
  if (lease->second.is_revoked) Fail("revokes twice");
  if (!lease->second.is_implicit && !lease->second.requests.empty()) Fail("revokes what runs");
  lease->second.is_revoked = true;
}

void SchedulerWorld::Apply(const Refuse& action) {
  if (waiting_.erase(action.request) == 0) Fail("refuses an unknown request");
  requests_.erase(action.request);
}

void SchedulerWorld::Apply(const AllowGrowth& action) {
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

void SchedulerWorld::Apply(const RefuseGrowth& action) {
  const auto growth = growths_.find(action.growth);
  if (growth == growths_.end()) return Fail("refuses an unknown growth");
  if (MakeSetup(shape_.setup)->options.evicts &&
      image_bytes_[growth->second.instance] + growth->second.bytes <= shape_.gpu_bytes) {
    Fail("refuses a growth that fits");
  }
  growths_.erase(growth);
}

void SchedulerWorld::Apply(const WakeUp& action) {
  if (action.when <= now_) Fail("wakes up in the past");
}

void SchedulerWorld::Apply(const RefuseLoad& action) {
  if (std::count(instances_.begin(), instances_.end(), action.instance) == 0) {
    Fail("refuses to load what is no instance");
  }
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

void SchedulerWorld::CheckAccounts() {
  const NodeState& node = scheduler_.node();
  for (const auto& [id, gpu] : node.gpus) CheckAccounts(gpu);
  std::size_t granted = 0;
  for (const auto& [instance, lease] : leases_) granted += lease.requests.size();
  if (node.requests.size() != waiting_.size() + granted + lost_.size()) {
    Fail("the scheduler knows of other requests");
  }
  CheckWaiting();
}

void SchedulerWorld::CheckAccounts(const Gpu& gpu) {
  Bytes used = 0;
  Bytes leaving = 0;
  int swaps = 0;
  for (const auto& [place, image] : images_) {
    if (place.second != gpu.id) continue;
    used += image.bytes;
    if (image.state == Image::kLeaving) leaving += image.bytes;
    if (image.state != Image::kPresent) ++swaps;
  }
  if (gpu.used != used) Fail("the GPU's bytes are not those of its images");
  if (gpu.leaving != leaving) Fail("what leaves is not what the scheduler takes it for");
  if (gpu.swaps != swaps) Fail("there are other swaps than the scheduler knows of");
  const bool is_held = std::any_of(leases_.begin(), leases_.end(), [&](const auto& lease) {
    return lease.second.gpus.count(gpu.id) > 0;
  });
  const bool is_thought_held =
      gpu.tenant && scheduler_.node().instances.at(gpu.tenant).tenancy.phase != Phase::kPlacing;
  if (is_held != is_thought_held) Fail("a lease is not where the scheduler takes it to be");
}

void SchedulerWorld::CheckWaiting() {
  const NodeState& node = scheduler_.node();
  std::size_t of_instances = 0;
  for (const auto& [id, instance] : node.instances) {
    of_instances += instance.waiting.size();
    const bool is_queued = instance.queued_as.has_value();
    const bool waits = instance.tenancy.phase == Phase::kIdle && !instance.waiting.empty();
    if (is_queued && !waits) Fail("who does not wait is queued");
    // There images come first.
    const bool may_be_cold = shape_.setup == "keep-alive";
    if (waits && !is_queued && !may_be_cold) Fail("who waits is not queued");
  }
  std::size_t of_functions = 0;
  for (const auto& [id, function] : node.functions) of_functions += function.waiting;
  const auto explicit_ones = static_cast<std::size_t>(
      std::count_if(waiting_.begin(), waiting_.end(),
                    [this](RequestId id) { return !requests_.at(id).is_implicit; }));
  if (of_instances != waiting_.size()) Fail("other requests wait for instances");
  if (of_functions != explicit_ones) Fail("other requests wait for functions");
  if (scheduler_.waiting() != explicit_ones) Fail("other requests wait");
}

void SchedulerWorld::Arrive() {
  RequestArrived arrival{.request = RequestId{next_id_++},
                         .instance = instances_[Below(instances_.size())],
                         .is_implicit = Below(4) == 0};
  if (!arrival.is_implicit && arrival.instance.value <= 2) {
    arrival.instance = {};
    arrival.function = kSharedFunction;
  }
  requests_[arrival.request] = {arrival.instance, arrival.is_implicit, now_};
  waiting_.insert(arrival.request);
  Tell(arrival);
}

void SchedulerWorld::EndSomeRequest() {
  if (!waiting_.empty() && Below(8) == 0) {
    const RequestId gone = *std::next(waiting_.begin(), Below(waiting_.size()));
    if (Below(4) == 0) return Requeue(gone);
    waiting_.erase(gone);
    requests_.erase(gone);
    return Tell(RequestGone{gone, Below(2) == 0 ? Ending::kCancelled : Ending::kFailed});
  }
  if (!lost_.empty() && Below(2) == 0) return EndSomeLostRequest();
  if (leases_.empty()) return;
  const Lease& lease = std::next(leases_.begin(), Below(leases_.size()))->second;
  if (lease.is_implicit || lease.requests.empty()) return;
  EndRequest(*lease.requests.begin(), static_cast<Ending>(Below(4)));
}

void SchedulerWorld::EndRequest(RequestId request, Ending ending) {
  const auto lease = leases_.find(requests_.at(request).instance);
  if (lease == leases_.end() || lease->second.requests.erase(request) == 0) return;
  requests_.erase(request);
  Tell(RequestGone{request, ending});
}

void SchedulerWorld::EndSomeLease() {
  if (leases_.empty()) return;
  const auto lease = std::next(leases_.begin(), Below(leases_.size()));
  // Programs end, and processes die.
  const std::size_t odds = lease->second.is_implicit ? 4 : 16;
  if (lease->second.is_revoked || Below(odds) == 0) EndLease(lease->first);
}

void SchedulerWorld::EndLease(InstanceId instance) {
  const auto lease = leases_.find(instance);
  if (lease == leases_.end()) return;
  Lose(lease->second);
  leases_.erase(lease);
  Tell(LeaseEnded{instance});
}

void SchedulerWorld::Lose(const Lease& lease) {
  for (const RequestId request : lease.requests) {
    if (lease.is_implicit) {
      requests_.erase(request);
    } else {
      lost_.insert(request);
    }
  }
}

void SchedulerWorld::EndSomeLostRequest() {
  const RequestId request = *std::next(lost_.begin(), Below(lost_.size()));
  if (Below(2) == 0) return Requeue(request);
  lost_.erase(request);
  requests_.erase(request);
  Tell(RequestGone{request, static_cast<Ending>(Below(4))});
}

void SchedulerWorld::Requeue(RequestId request) {
  lost_.erase(request);
  waiting_.insert(request);
  const Request& again = requests_.at(request);
  Tell(RequestArrived{.request = request,
                      .instance = again.instance,
                      .is_implicit = again.is_implicit,
                      .function = again.instance ? FunctionId() : kSharedFunction,
                      .arrival = again.arrival});
}

void SchedulerWorld::GrowOrShrink() {
  const InstanceId instance = shards_[Below(shards_.size())];
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

void SchedulerWorld::SendSomeAdminRequest() {
  const InstanceId instance = instances_[Below(instances_.size())];
  // The last of these GPUs does not exist.
  const auto gpu = static_cast<int>(Below(is_up_.size() + 1));
  switch (Below(7)) {
    case 0:
      return Tell(EvictionWanted{instance});
    case 6:
      return Tell(ImageSpilled{instance, Below(2) == 0});
    case 3:
      return Tell(HealthChanged{instance, static_cast<Health>(Below(3))});
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

std::vector<SchedulerWorld::Place> SchedulerWorld::MovingImages() const {
  std::vector<Place> moving;
  for (const auto& [place, image] : images_) {
    if (image.state != Image::kPresent) moving.push_back(place);
  }
  return moving;
}

void SchedulerWorld::CompleteSomeSwap() {
  const std::vector<Place> moving = MovingImages();
  if (!moving.empty()) CompleteSwap(moving[Below(moving.size())], Below(16) > 0);
}

void SchedulerWorld::CompleteSwap(const Place& place, bool is_ok) {
  const auto image = images_.find(place);
  if (image == images_.end() || image->second.state == Image::kPresent) return;
  if (image->second.state == Image::kLeaving) {
    images_.erase(image);
    return Tell(SwapOutDone{place.first, place.second});
  }
  for (auto& [source, readers] : readers_) {
    if (source.first == place.first) readers.erase(place.second);
  }
  image->second.state = Image::kPresent;
  if (!is_ok) images_.erase(image);
  Tell(SwapInDone{place.first, place.second, is_ok});
}

void SchedulerWorld::CompleteSomeWriteBack() {
  if (write_backs_.empty()) return;
  const Place place = *std::next(write_backs_.begin(), Below(write_backs_.size()));
  CompleteWriteBack(place, Below(2) == 0);
}

void SchedulerWorld::CompleteWriteBack(const Place& place, bool is_clean) {
  if (write_backs_.erase(place) > 0) Tell(WriteBackDone{place.first, place.second, is_clean});
}

GpuIndex SchedulerWorld::SomeGpu() {
  return std::next(is_up_.begin(), Below(is_up_.size()))->first;
}

InstanceId SchedulerWorld::SomeLead() { return lead_.at(shards_[Below(shards_.size())]); }

void SchedulerWorld::LoseSomeDomain() {
  const GpuIndex gpu = SomeGpu();
  const InstanceId lead = SomeLead();
  const auto is_its = [&](const Place& place) {
    return place.second == gpu && lead_.at(place.first) == lead;
  };
  std::erase_if(images_, [&](const auto& entry) { return is_its(entry.first); });
  std::erase_if(readers_, [&](const auto& entry) { return is_its(entry.first); });
  for (auto& [source, readers] : readers_) {
    if (lead_.at(source.first) == lead) readers.erase(gpu);
  }
  std::erase_if(write_backs_, is_its);
  const auto lease = leases_.find(lead);
  if (lease != leases_.end() && lease->second.gpus.contains(gpu)) {
    Lose(lease->second);
    leases_.erase(lease);
  }
  unserved_.insert({lead, gpu});
  Tell(ImagesLost{gpu, {lead}});
}

void SchedulerWorld::Forget(GpuIndex gpu) {
  std::erase_if(unserved_, [gpu](const Place& place) { return place.second == gpu; });
}

void SchedulerWorld::ServeFirstUnserved() {
  if (unserved_.empty()) return;
  const Place place = unserved_.extract(unserved_.begin()).value();
  Tell(InstancesServed{place.second, {place.first}});
}

void SchedulerWorld::BreakOrMendSomeGpu() {
  const auto gpu = std::next(is_up_.begin(), Below(is_up_.size()));
  gpu->second = !gpu->second;
  Forget(gpu->first);
  if (gpu->second) return Tell(Up(gpu->first));
  std::erase_if(images_, [&](const auto& entry) { return entry.first.second == gpu->first; });
  std::erase_if(readers_, [&](const auto& entry) { return entry.first.second == gpu->first; });
  for (auto& [source, readers] : readers_) readers.erase(gpu->first);
  std::erase_if(write_backs_, [&](const Place& place) { return place.second == gpu->first; });
  std::erase_if(leases_, [&](const auto& entry) {
    const bool is_lost = entry.second.gpus.count(gpu->first) > 0;
    if (is_lost) Lose(entry.second);
    return is_lost;
  });
  Tell(ExecutorDown{gpu->first});
}

}  // namespace torpor::scheduler
