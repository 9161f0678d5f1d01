#include "server/controller/admin_requests.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/controller/model/join.h"

namespace torpor::server {
namespace {

// A request waits for running leases, and for the swaps that it causes.
constexpr Duration kPatience = std::chrono::seconds(30);

bool HasCopy(const scheduler::Instance& placed, scheduler::Copy::State state) {
  return std::any_of(placed.image.copies.begin(), placed.image.copies.end(),
                     [state](const auto& copy) { return copy.second.state == state; });
}

}  // namespace

void AdminRequests::Start(const AdminRequest& request, Done done) {
  if (const FunctionInstance* const instance = instances_.Find(request.function)) {
    return StartOn(*instance, request, std::move(done));
  }
  const RegisteredFunction* const function = instances_.FindFunction(request.function);
  if (!function) {
    return done(absl::NotFoundError(absl::StrCat("there is no function ", request.function,
                                                 "; `torporctl functions` lists them")));
  }
  Join join(std::move(done));
  for (const InstanceId id : function->instances) {
    const FunctionInstance& each = instances_.At(id);
    if (each.is_leaving) continue;
    join.Add();
    StartOn(each, request, [join](const absl::Status& status) { join.Done(status); });
  }
  join.Done();
}

void AdminRequests::StartOn(const FunctionInstance& instance, const AdminRequest& request,
                            Done done) {
  const auto late = [this, request]() -> std::string {
    if (request.kind != AdminRequest::Kind::kLoad) {
      return "the node is busy; it was not done, ask again";
    }
    return absl::StrCat("there is no room yet beside what runs (", WhatRuns(request.gpu),
                        "); it is loaded when there is");
  };
  Pending& pending = pending_.emplace_back();
  pending.instance = instance.id;
  pending.give_up = loop_.Now() + kPatience;
  pending.late = late;
  pending.outcome = BeginAfterRevoked(request, instance.id);
  pending.done = std::move(done);
  loop_.RunAt(pending.give_up, [this] { Check(); });
  Check();
}

void AdminRequests::OnLoadRefused(const scheduler::RefuseLoad& action) {
  const FunctionInstance* const instance = instances_.FindById(action.instance);
  if (instance && !instance->is_leaving) load_refusals_[action.instance] = action.reason;
}

void AdminRequests::Check() {
  // An answer may lead back here.
  std::vector<Pending> pending = std::exchange(pending_, {});
  for (Pending& request : pending) {
    std::optional<absl::Status> outcome = request.outcome();
    if (!outcome && is_shut_down_) outcome = absl::UnavailableError("the node is shutting down");
    if (!outcome && loop_.Now() >= request.give_up) {
      outcome = absl::DeadlineExceededError(request.late());
    }
    if (outcome) {
      request.done(*outcome);
    } else {
      pending_.push_back(std::move(request));
    }
  }
}

void AdminRequests::Abandon(const FunctionInstance& instance) {
  std::vector<Pending> abandoned;
  std::vector<Pending> pending;
  for (Pending& request : std::exchange(pending_, {})) {
    (request.instance == instance.id ? abandoned : pending).push_back(std::move(request));
  }
  pending_ = std::move(pending);
  load_refusals_.erase(instance.id);
  for (const Pending& request : abandoned) {
    request.done(absl::NotFoundError(absl::StrCat(instance.full_name, " was removed")));
  }
}

void AdminRequests::Shutdown() {
  is_shut_down_ = true;
  Check();
}

AdminRequests::Outcome AdminRequests::BeginAfterRevoked(const AdminRequest& request,
                                                        InstanceId id) {
  return [this, request, id, outcome = Outcome()]() mutable -> std::optional<absl::Status> {
    const FunctionInstance& instance = instances_.At(id);
    if (!outcome) {
      if (instance.lease && instance.lease->is_revoked) return std::nullopt;
      absl::StatusOr<Outcome> begun = Begin(request, instance);
      if (!begun.ok()) return begun.status();
      outcome = *std::move(begun);
    }
    return outcome();
  };
}

absl::StatusOr<AdminRequests::Outcome> AdminRequests::Begin(const AdminRequest& request,
                                                            const FunctionInstance& instance) {
  using Kind = AdminRequest::Kind;
  switch (request.kind) {
    case Kind::kLoad:
      return BeginLoad(instance, request.gpu);
    case Kind::kEvict:
      return BeginEviction(instance);
    case Kind::kPin:
    case Kind::kUnpin:
      events_.Feed(scheduler::PinChanged{instance.id, request.kind == Kind::kPin});
      return [] { return absl::OkStatus(); };
    case Kind::kCheckpoint:
      return BeginCheckpoint(instance.id);
  }
  return absl::InvalidArgumentError("unknown administrator's request");
}

absl::Status AdminRequests::CheckLoad(const FunctionInstance& instance,
                                      std::optional<GpuIndex> gpu) const {
  const std::string& name = instance.full_name;
  if (sessions_.AbleOf(instance).empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " has no process that uses CUDA; start it, then load it"));
  }
  if (gpu && !executors_.Serves(*gpu)) {
    return absl::InvalidArgumentError(
        absl::StrCat("this node serves no GPU ", gpu->value, "; `torporctl status` lists them"));
  }
  if (gpu && instance.shards.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " uses ", instance.shards.size(), " GPUs; load it without naming one"));
  }
  return absl::OkStatus();
}

absl::StatusOr<AdminRequests::Outcome> AdminRequests::BeginLoad(const FunctionInstance& instance,
                                                                std::optional<GpuIndex> gpu) {
  const absl::Status possible = CheckLoad(instance, gpu);
  if (!possible.ok()) return possible;
  load_refusals_.erase(instance.id);
  events_.Feed(scheduler::LoadWanted{instance.id, gpu});
  return [this, &instance, gpu] { return OutcomeOfLoad(instance, gpu); };
}

std::optional<absl::Status> AdminRequests::OutcomeOfLoad(const FunctionInstance& instance,
                                                         std::optional<GpuIndex> gpu) const {
  using CopyState = scheduler::Copy::State;
  for (const SessionPtr& session : sessions_.Of(instance)) {
    if (session->image.is_arriving()) return std::nullopt;
  }
  bool is_coming = false;
  const auto is_there = [&](InstanceId shard) {
    const scheduler::Instance& placed = scheduler_.node().instances.at(shard);
    // The router's request may bring the image, too.
    const bool is_placing = placed.tenancy.phase == scheduler::Phase::kPlacing;
    is_coming |=
        scheduler_.IsLoadWanted(shard) || (is_placing && (!gpu || placed.tenancy.gpu == *gpu));
    // A moving image counts as loaded only after leaving the old GPU.
    const bool is_leaving = HasCopy(placed, CopyState::kLeaving);
    is_coming |= is_leaving;
    if (is_leaving) return false;
    return std::any_of(
        placed.image.copies.begin(), placed.image.copies.end(), [&](const auto& copy) {
          is_coming |= copy.second.state == CopyState::kComing;
          return copy.second.state == CopyState::kPresent && (!gpu || copy.first == *gpu);
        });
  };
  if (std::all_of(instance.shards.begin(), instance.shards.end(), is_there)) {
    return absl::OkStatus();
  }
  if (is_coming) return std::nullopt;
  return LoadFailure(instance, gpu);
}

absl::Status AdminRequests::LoadFailure(const FunctionInstance& instance,
                                        std::optional<GpuIndex> gpu) const {
  const auto because = [&](const std::string& reason) {
    return absl::FailedPreconditionError(
        absl::StrCat(instance.full_name, " was not loaded: ", reason));
  };
  const auto refusal = load_refusals_.find(instance.id);
  if (refusal == load_refusals_.end()) {
    return because("it was evicted meanwhile, or the executor of its GPU died");
  }
  const std::string where = gpu ? absl::StrCat("GPU ", gpu->value) : "any GPU that serves";
  switch (refusal->second) {
    case scheduler::LoadRefusal::kNoGpu:
      return because(gpu ? absl::StrCat(where, " does not serve now") : "no GPU serves now");
    case scheduler::LoadRefusal::kTooFewGpus:
      return because(absl::StrCat("it needs ", instance.shards.size(),
                                  " GPUs at a time, and fewer serve now"));
    case scheduler::LoadRefusal::kTooLarge: {
      Bytes image_bytes = 0;
      for (const InstanceId shard : instance.shards) {
        image_bytes += scheduler_.node().instances.at(shard).image.bytes;
      }
      return because(absl::StrCat("its memory, ", image_bytes, " bytes, is larger than ", where));
    }
    case scheduler::LoadRefusal::kNoRoom:
      return because(absl::StrCat("nothing is evicted, and it does not fit on ", where));
    case scheduler::LoadRefusal::kInUse:
      return because("a request has it on another GPU; load it when none runs");
    case scheduler::LoadRefusal::kSwapFailed:
      return because(
          "it could not be copied to the GPU, or the GPU's executor died; torpord's log has the "
          "error");
  }
  return because("");
}

std::string AdminRequests::WhatRuns(std::optional<GpuIndex> gpu) const {
  std::string text;
  for (const auto& [id, state] : scheduler_.node().gpus) {
    if (!state.tenant || (gpu && *gpu != id)) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    instances_.ShardOf(state.tenant).instance->full_name, " on GPU ", id.value);
  }
  return text.empty() ? "nothing now" : text;
}

absl::StatusOr<AdminRequests::Outcome> AdminRequests::BeginEviction(
    const FunctionInstance& instance) {
  const auto& placed = scheduler_.node().instances;
  if (!placed.at(instance.id).tenancy.is_idle()) {
    return absl::FailedPreconditionError(
        absl::StrCat(instance.full_name, " is in use; evict it when no request runs"));
  }
  for (const InstanceId shard : instance.shards) {
    if (!HasCopy(placed.at(shard), scheduler::Copy::State::kComing)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        instance.full_name, " is just being brought to a GPU; evict it when it is there"));
  }
  events_.Feed(scheduler::EvictionWanted{instance.id});
  return [this, &instance]() -> std::optional<absl::Status> {
    // The router's request may bring the image back at once.
    const bool is_leaving =
        std::any_of(instance.shards.begin(), instance.shards.end(), [this](InstanceId shard) {
          return HasCopy(scheduler_.node().instances.at(shard), scheduler::Copy::State::kLeaving);
        });
    return is_leaving ? std::nullopt : std::optional(absl::OkStatus());
  };
}

AdminRequests::Outcome AdminRequests::BeginCheckpoint(InstanceId id) {
  struct Progress {
    bool has_begun = false;
    std::optional<absl::Status> outcome;
  };
  return [this, id, progress = std::make_shared<Progress>()]() -> std::optional<absl::Status> {
    const FunctionInstance& instance = instances_.At(id);
    if (!progress->has_begun && instance.lease) return std::nullopt;
    if (!std::exchange(progress->has_begun, true)) {
      Checkpoint(instance, [progress](const absl::Status& status) { progress->outcome = status; });
    }
    return progress->outcome;
  };
}

void AdminRequests::Checkpoint(const FunctionInstance& instance, const Done& then) {
  saves_.Save(instance, loop_.Now(), [this, then](const absl::Status& saved) {
    then(absl::IsAborted(saved) ? absl::AbortedError("the executor died meanwhile; ask again")
                                : saved);
    // Posted, because Check may be iterating over the requests.
    loop_.Post([this] { Check(); });
  });
}

}  // namespace torpor::server
