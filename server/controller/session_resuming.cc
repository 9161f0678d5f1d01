#include "server/controller/session_resuming.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/secret.h"
#include "server/controller/memory/memory_reply.h"
#include "server/controller/model/cuda_errors.h"

namespace torpor::server {
namespace {

// What a client that lives needs to find a torpord that listens, many times over. Deaths of
// torpord, however many, do not lengthen the life of a session whose client is dead.
constexpr Duration kLeastPatience = std::chrono::seconds(1);

// The request of a message that may have had an effect which is in the log; 0 for all others.
std::uint64_t RequestOf(const wire::ClientMessage& message) {
  return std::visit(
      [](const auto& call) -> std::uint64_t {
        using Call = std::decay_t<decltype(call)>;
        constexpr bool kHasEffect =
            std::is_same_v<Call, wire::Malloc> || std::is_same_v<Call, wire::Free> ||
            std::is_same_v<Call, wire::HostAlloc> || std::is_same_v<Call, wire::HostFree>;
        if constexpr (kHasEffect) return call.request_id;
        return 0;
      },
      message);
}

}  // namespace

void SessionResuming::Await(SessionId session, const LoggedSession& logged) {
  const bool is_away_already = logged.client_away_since != 0;
  awaited_[session] = is_away_already ? TimePoint(Duration(logged.client_away_since)) : loop_.Now();
  const SessionPtr restored = sessions_.Find(session);
  restored->away_since = awaited_[session];
  if (restored->journal) restored->journal->NoteAway(*restored, awaited_[session]);
  Answers& answers = answers_[session];
  for (const auto& [offset, piece] : logged.device.pieces) {
    answers[piece.request] = logged.opened.device_base + offset;
  }
  for (const auto& [offset, piece] : logged.host.pieces) {
    answers[piece.request] = logged.opened.host_base + offset;
  }
  for (const std::uint64_t request : logged.frees) answers[request] = 0;
}

void SessionResuming::BeginPatience(Duration patience) {
  const TimePoint soonest = loop_.Now() + std::min(patience, kLeastPatience);
  for (const auto& [id, since] : awaited_) {
    loop_.RunAt(std::max(since + patience, soonest),
                [this, id = id, patience] { Expire(id, patience); });
  }
}

void SessionResuming::Expire(SessionId id, Duration patience) {
  if (awaited_.erase(id) == 0) return;
  const SessionPtr session = sessions_.Find(id);
  const bool waits = session && session->state == ClientSession::State::kAway;
  if (!waits || asking_.contains(id)) return;
  Close(session, fmt::format("its process did not come back within {:.0f} s", ToSeconds(patience)),
        OutlivedFate::kExpired);
}

void SessionResuming::Close(const SessionPtr& session, const std::string& why, OutlivedFate fate) {
  awaited_.erase(session->id);
  answers_.erase(session->id);
  lost_[session->id] = why;
  telemetry_.OnSessionOutlived(fate);
  handlers_.close(session, why);
  if (sessions_.AbleOf(instances_.Of(*session)).empty()) {
    requests_.OnSessionLost(session->instance, why);
  }
}

void SessionResuming::Greet(const SessionPtr& newcomer, const wire::Resume& resume) {
  newcomer->process_id = resume.hello.process_id;
  newcomer->program = resume.hello.program.substr(0, 256);
  const absl::StatusOr<SessionPtr> session = Find(resume);
  if (!session.ok()) return Refuse(newcomer, resume, std::string(session.status().message()));
  const std::string obstacle = FindObstacle(**session, resume.hello);
  if (!obstacle.empty()) {
    Refuse(newcomer, resume, obstacle);
    return Close(*session, obstacle, OutlivedFate::kRefused);
  }
  sessions_.MoveLink(newcomer, *session);
  asking_.insert((*session)->id);
  AnswerWaiting();
}

absl::StatusOr<SessionPtr> SessionResuming::Find(const wire::Resume& resume) const {
  const SessionId id{resume.session_id};
  if (const auto lost = lost_.find(id); lost != lost_.end()) {
    return absl::NotFoundError(absl::StrCat("the session is lost: ", lost->second));
  }
  SessionPtr session = sessions_.Find(id);
  const bool is_known = session && session->state == ClientSession::State::kAway &&
                        SecretsEqual(session->memory.key, resume.session_key);
  if (is_known) return session;
  return absl::NotFoundError(
      "torpord was started anew, and knows no session with this id and key that waits for its "
      "client");
}

std::string SessionResuming::FindObstacle(const ClientSession& session, const wire::Hello& hello) {
  if (hello.protocol_version != wire::kProtocolVersion) {
    return absl::StrCat("the client library speaks protocol ", hello.protocol_version,
                        ", the new torpord ", wire::kProtocolVersion);
  }
  const FunctionInstance* const instance = opening_.InstanceForToken(hello.token);
  if (!instance || instance->id != session.instance) {
    return "the token (TORPOR_TOKEN) is no longer that of the session's function";
  }
  return session.is_lost ? "its memory on a GPU is lost" : "";
}

void SessionResuming::Refuse(const SessionPtr& newcomer, const wire::Resume& resume,
                             const std::string& why) {
  spdlog::warn("{} cannot go on: {}", Describe(*newcomer), why);
  newcomer->link->Send(wire::ResumeReply{kCudaErrorDevicesUnavailable, why, 0});
  handlers_.close(newcomer, why);
  const FunctionInstance* const instance = opening_.InstanceForToken(resume.hello.token);
  if (instance) handlers_.refused(*instance, why);
}

void SessionResuming::AnswerWaiting() {
  if (!executors_.IsAnyReady()) return;
  for (const SessionId id : std::exchange(asking_, {})) {
    const SessionPtr session = sessions_.Find(id);
    if (session && session->state == ClientSession::State::kAway) Resume(session);
  }
}

void SessionResuming::Resume(const SessionPtr& session) {
  awaited_.erase(session->id);
  if (session->journal) session->journal->NoteAway(*session, std::nullopt);
  session->state = ClientSession::State::kOpen;
  session->link->Send(
      wire::ResumeReply{kCudaSuccess, "", session->memory.files->checkpoint().saved_command()});
  FunctionInstance& instance = instances_.Of(*session);
  spdlog::info("{} of {} goes on", Describe(*session), instance.full_name);
  telemetry_.OnSessionOutlived(OutlivedFate::kResumed);
  leases_.Rejoin(session);
  health_.Forgive(instance);
}

bool SessionResuming::OnClosed(const SessionPtr& session) {
  answers_.erase(session->state == ClientSession::State::kAway ? SessionId() : session->id);
  if (session->state != ClientSession::State::kAway) return false;
  asking_.erase(session->id);
  sessions_.DropLink(session);
  // Whether it comes again is not known: its patience may be over.
  if (!awaited_.contains(session->id)) {
    Close(session, "its process has gone", OutlivedFate::kExpired);
  }
  return true;
}

bool SessionResuming::AnswerAgain(const SessionPtr& session, const wire::ClientMessage& message) {
  const auto answers = answers_.find(session->id);
  if (answers == answers_.end()) return false;
  const auto answer = answers->second.find(RequestOf(message));
  if (answer == answers->second.end()) return false;
  SendMemoryReply(*session, answer->first, kCudaSuccess, "", answer->second);
  return true;
}

}  // namespace torpor::server
