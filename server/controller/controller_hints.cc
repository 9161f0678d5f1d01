#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/controller/controller.h"

// What an administrator asks for, and when it has come true.
namespace torpor::server {
namespace {

// A hint waits for requests that run, and for the images that swap because of it.
constexpr Duration kHintPatience = std::chrono::seconds(30);

}  // namespace

void Controller::Advise(const Hint& hint, std::function<void(absl::Status)> done) {
  Instance* const instance = InstanceOf(hint.function);
  if (!instance) {
    return done(absl::NotFoundError(absl::StrCat("there is no function ", hint.function,
                                                 "; `torporctl functions` lists them")));
  }
  const auto late = [this, hint]() -> std::string {
    if (hint.kind != Hint::Kind::kLoad) return "the node is busy; it was not done, ask again";
    return absl::StrCat("there is no room yet beside what runs (", WhatRuns(hint.gpu),
                        "); it is loaded when there is");
  };
  PendingHint& pending = hints_.emplace_back();
  pending.give_up = loop_.Now() + kHintPatience;
  pending.late = late;
  pending.outcome = FollowAfterRevoked(hint, instance->id);
  pending.done = std::move(done);
  loop_.RunAt(pending.give_up, [this] { AnswerHints(); });
  AnswerHints();
}

Controller::HintOutcome Controller::FollowAfterRevoked(const Hint& hint, InstanceId id) {
  return [this, hint, id, outcome = HintOutcome()]() mutable -> std::optional<absl::Status> {
    const Instance& instance = instances_.at(id);
    if (!outcome) {
      if (instance.lease && instance.lease->is_revoked) return std::nullopt;
      absl::StatusOr<HintOutcome> followed = Follow(hint, instance);
      if (!followed.ok()) return followed.status();
      outcome = *std::move(followed);
    }
    return outcome();
  };
}

absl::StatusOr<Controller::HintOutcome> Controller::Follow(const Hint& hint,
                                                           const Instance& instance) {
  switch (hint.kind) {
    case Hint::Kind::kLoad:
      return FollowLoad(instance, hint.gpu);
    case Hint::Kind::kEvict:
      return FollowEvict(instance);
    case Hint::Kind::kPin:
    case Hint::Kind::kUnpin:
      Feed(scheduler::PinChanged{instance.id, hint.kind == Hint::Kind::kPin});
      return [] { return absl::OkStatus(); };
    case Hint::Kind::kCheckpoint:
      return FollowCheckpoint(instance.id);
  }
  return absl::InvalidArgumentError("an unknown hint");
}

absl::StatusOr<Controller::HintOutcome> Controller::FollowLoad(const Instance& instance,
                                                               std::optional<GpuIndex> gpu) {
  const std::string& name = instance.config.name;
  if (AbleSessionsOf(instance).empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " has no process that uses CUDA; start it, then load it"));
  }
  if (gpu && executors_.count(*gpu) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("this node serves no GPU ", gpu->value, "; `torporctl status` lists them"));
  }
  if (gpu && instance.parts.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " uses ", instance.parts.size(), " GPUs; load it without naming one"));
  }
  load_refusals_.erase(instance.id);
  Feed(scheduler::LoadWanted{instance.id, gpu});
  return [this, id = instance.id, parts = instance.parts, gpu,
          name]() -> std::optional<absl::Status> {
    bool is_coming = false;
    for (const SessionPtr& session : SessionsOf(instances_.at(id))) {
      if (session->is_arriving) return std::nullopt;
    }
    const auto is_there = [&](InstanceId part) {
      const scheduler::Instance& placed = scheduler_.node().instances.at(part);
      const scheduler::Tenancy& tenancy = placed.tenancy;
      const auto& copies = placed.image.copies;
      // A request may have it brought, too.
      const bool is_placing = tenancy.phase == scheduler::Phase::kPlacing;
      is_coming |= scheduler_.IsLoadWanted(part) || (is_placing && (!gpu || tenancy.gpu == *gpu));
      // One that moves is there when it has left where it was.
      const bool is_leaving = std::any_of(copies.begin(), copies.end(), [](const auto& copy) {
        return copy.second.state == scheduler::Copy::State::kLeaving;
      });
      is_coming |= is_leaving;
      if (is_leaving) return false;
      return std::any_of(copies.begin(), copies.end(), [&](const auto& copy) {
        is_coming |= copy.second.state == scheduler::Copy::State::kComing;
        return copy.second.state == scheduler::Copy::State::kPresent &&
               (!gpu || copy.first == *gpu);
      });
    };
    if (std::all_of(parts.begin(), parts.end(), is_there)) return absl::OkStatus();
    if (is_coming) return std::nullopt;
    return LoadFailure(instances_.at(id), gpu);
  };
}

absl::Status Controller::LoadFailure(const Instance& instance, std::optional<GpuIndex> gpu) const {
  const auto because = [&](const std::string& reason) {
    return absl::FailedPreconditionError(
        absl::StrCat(instance.config.name, " was not loaded: ", reason));
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
      return because(
          absl::StrCat("it needs ", instance.parts.size(), " GPUs at a time, and fewer serve now"));
    case scheduler::LoadRefusal::kTooLarge:
      return because(absl::StrCat("its memory, ", SnapshotOf(instance).image_bytes,
                                  " bytes, is larger than ", where));
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

std::string Controller::WhatRuns(std::optional<GpuIndex> gpu) const {
  std::string text;
  for (const auto& [id, state] : scheduler_.node().gpus) {
    if (!state.tenant || (gpu && *gpu != id)) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    instances_.at(parts_.at(state.tenant)).config.name, " on GPU ", id.value);
  }
  return text.empty() ? "nothing now" : text;
}

absl::StatusOr<Controller::HintOutcome> Controller::FollowEvict(const Instance& instance) {
  if (!scheduler_.node().instances.at(instance.id).tenancy.is_idle()) {
    return absl::FailedPreconditionError(
        absl::StrCat(instance.config.name, " is in use; evict it when no request runs"));
  }
  for (const InstanceId part : instance.parts) {
    for (const auto& [gpu, copy] : scheduler_.node().instances.at(part).image.copies) {
      if (copy.state != scheduler::Copy::State::kComing) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          instance.config.name, " is just being brought to a GPU; evict it when it is there"));
    }
  }
  Feed(scheduler::EvictionWanted{instance.id});
  return [this, parts = instance.parts]() -> std::optional<absl::Status> {
    // A request may have it brought back in the moment in which it has gone.
    const bool is_leaving = std::any_of(parts.begin(), parts.end(), [this](InstanceId part) {
      const auto& copies = scheduler_.node().instances.at(part).image.copies;
      return std::any_of(copies.begin(), copies.end(), [](const auto& copy) {
        return copy.second.state == scheduler::Copy::State::kLeaving;
      });
    });
    return is_leaving ? std::nullopt : std::optional(absl::OkStatus());
  };
}

Controller::HintOutcome Controller::FollowCheckpoint(InstanceId id) {
  struct Progress {
    bool has_begun = false;
    std::size_t open = 1;
    absl::Status status;
  };
  return [this, id, progress = std::make_shared<Progress>()]() -> std::optional<absl::Status> {
    const Instance& instance = instances_.at(id);
    if (!progress->has_begun && instance.lease) return std::nullopt;
    if (!std::exchange(progress->has_begun, true)) {
      const auto one_done = [this, progress](const OperationResult& result) {
        progress->status.Update(result.is_executor_lost
                                    ? absl::AbortedError("the executor died meanwhile; ask again")
                                    : result.status);
        --progress->open;
        // Not at once: this may be the middle of going through the hints.
        loop_.Post([this] { AnswerHints(); });
      };
      for (const SessionPtr& session : SessionsOf(instance)) {
        if (!session->resident) continue;
        ++progress->open;
        SwapOutSession(session, *session->resident, WriteBackReason::kCheckpoint, one_done);
      }
      --progress->open;
    }
    return progress->open == 0 ? std::optional(progress->status) : std::nullopt;
  };
}

void Controller::AnswerHints() {
  // An answer may lead back here.
  std::vector<PendingHint> pending = std::exchange(hints_, {});
  for (PendingHint& hint : pending) {
    std::optional<absl::Status> outcome = hint.outcome();
    if (!outcome && is_shut_down_) outcome = absl::UnavailableError("the node is shutting down");
    if (!outcome && loop_.Now() >= hint.give_up) {
      outcome = absl::DeadlineExceededError(hint.late());
    }
    if (outcome) {
      hint.done(*outcome);
    } else {
      hints_.push_back(std::move(hint));
    }
  }
}

}  // namespace torpor::server
