#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/controller/controller.h"

// What is told of requests afterwards.
namespace torpor::server {

Duration Controller::WaitForOwnLease(const Request& request, const scheduler::Wait& wait,
                                     TimePoint until) const {
  const RequestStory& story = request.story;
  const scheduler::Instance& placed = scheduler_.node().instances.at(request.instance);
  const bool had_no_turn = !story.decided && !placed.queued_as;
  if (story.joined || had_no_turn) return until - request.arrival;
  return std::clamp(wait.since - request.arrival, Duration::zero(), until - request.arrival);
}

void Controller::NoteDelay(RequestId id, Request& request) const {
  const scheduler::NodeState& node = scheduler_.node();
  const scheduler::Instance& placed = node.instances.at(request.instance);
  RequestStory& story = request.story;
  const bool is_placed = placed.tenancy.phase == scheduler::Phase::kPlacing &&
                         !placed.waiting.empty() && placed.waiting.begin()->second == id;
  if (!story.decided && is_placed) {
    story.decided = std::max(request.arrival, instances_.at(request.instance).placement.since);
  }
  const scheduler::Wait& wait =
      story.decided ? instances_.at(request.instance).placement.wait : placed.wait;
  const TimePoint until = story.decided.value_or(loop_.Now());
  Delay& delay = story.delay;
  delay.own_lease = WaitForOwnLease(request, wait, until);
  const Duration queued = until - request.arrival - delay.own_lease;
  delay.by_choice = std::min(queued, wait.by_choice_until(loop_.Now()));
  delay.no_gpu = queued - delay.by_choice;
  if (delay.by_choice > Duration::zero()) delay.awaited = wait.awaited;
  delay.has_revoked = wait.has_revoked && queued > Duration::zero();
  const auto known = node.requests.find(id);
  if (known != node.requests.end()) delay.is_late = known->second.turn.is_late;
  delay.is_beyond_rescue |= scheduler_.IsBeyondRescue(placed.function);
}

void Controller::AddOthers(RequestStory& story) const {
  const TimePoint until = story.decided.value_or(story.as_of);
  const auto add = [&](const RequestStory& other) {
    const bool was_first =
        other.decided && *other.decided > story.arrival && *other.decided <= until;
    if (!was_first || other.id == story.id) return;
    ++(other.arrival <= story.arrival ? story.delay.earlier
                                      : story.delay.overtakers)[other.function];
  };
  for (const auto& [id, request] : requests_) add(request.story);
  for (const RequestStory& other : history_.stories()) add(other);
}

absl::StatusOr<RequestStory> Controller::Explain(const std::string& request_id) const {
  const auto with_others = [this](RequestStory story) {
    AddOthers(story);
    return story;
  };
  // The newest of that name: requests count up.
  for (auto found = requests_.rbegin(); found != requests_.rend(); ++found) {
    if (found->second.story.id != request_id) continue;
    Request request = found->second;
    if (!request.story.decided) NoteDelay(found->first, request);
    request.story.as_of = loop_.Now();
    return with_others(std::move(request.story));
  }
  if (const RequestStory* const story = history_.Find(request_id)) return with_others(*story);
  return absl::NotFoundError(
      absl::StrCat("no request ", request_id, " runs, waits, or is among the last ones"));
}

}  // namespace torpor::server
