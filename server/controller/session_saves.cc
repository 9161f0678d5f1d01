#include "server/controller/session_saves.h"

#include <chrono>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/controller/model/join.h"

namespace torpor::server {
namespace {

// Clients that live look for the next torpord many times a second.
constexpr Duration kAwayPatience = std::chrono::seconds(5);

// The session's part in its instance's lease, if any.
std::optional<ParticipantState> PartOf(const ClientSession& session,
                                       const FunctionInstance& instance) {
  if (!instance.lease || session.lease.id != instance.lease->id) return std::nullopt;
  const auto part = instance.lease->participants.find(session.id);
  if (part == instance.lease->participants.end()) return std::nullopt;
  return part->second;
}

absl::Status DoneAgainFirst() { return absl::AbortedError("its work is to be done again first"); }

}  // namespace

void SessionSaves::Save(const FunctionInstance& instance, TimePoint begin, const Done& done) {
  Join join(done);
  for (const SessionPtr& session : sessions_.Of(instance)) {
    join.Add();
    SaveSession(instance, session, begin,
                [join](const absl::Status& status) { join.Done(status); });
  }
  join.Done();
}

void SessionSaves::SaveSession(const FunctionInstance& instance, const SessionPtr& session,
                               TimePoint begin, const Done& done) {
  using State = ClientSession::State;
  // A process's GPU memory ends with the process.
  if (session->state == State::kClosing || !session->is_announced) return done(absl::OkStatus());
  if (session->state == State::kAway) return done(StatusOfAway(*session, begin));
  if (session->is_lost) return done(StatusOfLost(*session, begin));
  if (session->image.is_replay_due()) return done(DoneAgainFirst());
  const std::optional<ParticipantState> part = PartOf(*session, instance);
  // The session has done nothing under this lease, and its work before was saved then.
  if (part == ParticipantState::kPreparing) return done(absl::OkStatus());
  if (part == ParticipantState::kOffered || part == ParticipantState::kAcked) {
    return Ask(*session, done);
  }
  WriteBack(session, done);
}

absl::Status SessionSaves::StatusOfAway(const ClientSession& session, TimePoint begin) const {
  if (session.away_since < begin) return absl::OkStatus();
  if (loop_.Now() < session.away_since + kAwayPatience) {
    return absl::AbortedError("its client is on the way back");
  }
  return absl::UnavailableError("its process has not come back to this torpord");
}

absl::Status SessionSaves::StatusOfLost(const ClientSession& session, TimePoint begin) {
  if (session.lost_since < begin) return absl::OkStatus();
  return absl::UnavailableError("its memory was lost while the request ran");
}

void SessionSaves::Ask(const ClientSession& session, const Done& done) {
  const std::uint64_t id = ++last_id_;
  asked_[id] = {session.id, done};
  session.link->Send(wire::SaveMemory{id});
}

void SessionSaves::OnReply(const SessionPtr& session, const wire::SaveMemoryReply& reply) {
  const auto found = asked_.find(reply.save_id);
  if (found == asked_.end() || found->second.session != session->id) return;
  const Done done = asked_.extract(found).mapped().done;
  switch (reply.outcome) {
    case wire::SaveMemoryReply::kSaved:
      return done(absl::OkStatus());
    case wire::SaveMemoryReply::kNoLease:
      // The client may know of its executor's death before this process does.
      if (session->lease.id) return done(absl::AbortedError("its lease is ending"));
      return WriteBack(session, done);
    default:
      return done(
          absl::UnavailableError(absl::StrCat("its memory could not be saved: ", reply.message)));
  }
}

void SessionSaves::WriteBack(const SessionPtr& session, const Done& done) {
  const ImageState& image = session->image;
  if (image.is_replay_due()) return done(DoneAgainFirst());
  if (!image.gpu() || !image.has_changes()) return done(absl::OkStatus());
  swaps_.SwapOut(
      session, *image.gpu(), WriteBackReason::kCheckpoint,
      [session, done](const OperationResult& result) {
        // A step that waited finds no image on the GPU after the executor's death.
        if (session->image.is_replay_due()) return done(DoneAgainFirst());
        done(result.is_executor_lost ? absl::AbortedError("its executor has died") : result.status);
      });
}

void SessionSaves::OnClosed(const ClientSession& session) {
  std::vector<Done> waiting;
  for (auto entry = asked_.begin(); entry != asked_.end();) {
    const bool is_of_session = entry->second.session == session.id;
    if (is_of_session) waiting.push_back(std::move(entry->second.done));
    entry = is_of_session ? asked_.erase(entry) : std::next(entry);
  }
  for (const Done& done : waiting) done(absl::OkStatus());
}

}  // namespace torpor::server
