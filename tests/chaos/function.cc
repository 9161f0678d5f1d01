#include "tests/chaos/function.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/chaos/tcp_connections.h"
#include "tests/e2e/await.h"

namespace torpor::chaos {
namespace {

constexpr auto kStartPatience = std::chrono::seconds(60);
constexpr std::size_t kRequestsTold = 20;
constexpr std::size_t kMaxOutput = 16 << 10;

std::string EndOf(const std::string& text) {
  return text.substr(text.size() - std::min(text.size(), kMaxOutput));
}

constexpr int kOk = 200;
constexpr int kNone = 0;  // no answer

// Whether nobody took the connection.
bool WasRefused(const e2e::Reply& reply) {
  return reply.status == kNone &&
         reply.body ==
             std::generic_category().message(static_cast<int>(std::errc::connection_refused));
}

std::string DescriptionOf(const e2e::Reply& reply) {
  std::string text = fmt::format("HTTP status {}, {}", reply.status, reply.body);
  for (const auto& [name, value] : reply.headers) {
    if (name.starts_with("x-")) text += fmt::format(" {}={}", name, value);
  }
  return text;
}

}  // namespace

Function::Function(const e2e::EmulatedNode& node, std::string name,
                   std::unique_ptr<Program> program, unsigned seed)
    : node_(node), name_(std::move(name)), state_(std::move(program)), random_(seed) {}

absl::Status Function::Start() {
  std::vector<std::string> command = state_.program().Command();
  command.insert(command.end(), {"--port", std::to_string(node_.PortOf(name_))});
  std::unique_ptr<e2e::ChildProcess> before;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    before = std::move(process_);
  }
  before.reset();
  state_.Begin();
  last_requests_.clear();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    process_ = node_.RunProgram({"--function", name_}, command);
    is_killed_ = false;
    ++starts_;
  }
  if (!process_->WaitForLine("listening on", kStartPatience).empty() || is_killed_) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(name_, " has not started: ", Report()));
}

Outcome Function::Ask() { return state_.is_in_doubt() ? AskWhatWasDone() : AskNext(); }

Outcome Function::AskNext() {
  const e2e::Turn turn = state_.Next(random_);
  Outcome outcome;
  const e2e::Reply reply = Send(turn, outcome);
  Judge(turn, reply, reply.body == turn.answer, outcome);
  if (outcome.kind == Outcome::Kind::kRefused) state_.TakeBack();
  if (outcome.kind == Outcome::Kind::kUnanswered) state_.Doubt();
  return outcome;
}

Outcome Function::AskWhatWasDone() {
  // A request that lay with the function when the connection broke would be carried out later.
  const absl::Status ended = e2e::Await("earlier requests of " + name_ + " have ended", [this] {
    return ConnectionsTo(static_cast<std::uint16_t>(node_.PortOf(name_))) == 0;
  });
  Outcome outcome;
  if (!ended.ok()) {
    outcome.kind = Outcome::Kind::kFailed;
    outcome.what = ended.ToString();
    return outcome;
  }
  const e2e::Turn inquiry = state_.Inquiry();
  const e2e::Reply reply = Send(inquiry, outcome);
  using Finding = ProgramState::Finding;
  const Finding finding = reply.status == kOk ? state_.Resolve(reply.body) : Finding::kImpossible;
  Judge(inquiry, reply, finding != Finding::kImpossible, outcome);
  outcome.was_done = finding == Finding::kDone;
  return outcome;
}

e2e::Reply Function::Send(const e2e::Turn& turn, Outcome& outcome) {
  last_requests_.push_back(turn.path + " " + turn.body);
  if (last_requests_.size() > kRequestsTold) last_requests_.pop_front();
  outcome.sent = SteadyClock().Now();
  outcome.wanted = wanted_.value_or(outcome.sent);
  e2e::Reply reply = node_.PostOne("/function/" + name_ + "/" + turn.path, turn.body);
  outcome.answered = SteadyClock().Now();
  return reply;
}

void Function::Judge(const e2e::Turn& turn, const e2e::Reply& reply, bool is_right,
                     Outcome& outcome) {
  using Kind = Outcome::Kind;
  outcome.kind = reply.status == kOk     ? (is_right ? Kind::kRight : Kind::kWrong)
                 : is_killed_            ? Kind::kExcused
                 : WasRefused(reply)     ? Kind::kRefused
                 : reply.status == kNone ? Kind::kUnanswered
                                         : Kind::kFailed;
  const bool is_answered = outcome.kind == Kind::kRight || outcome.kind == Kind::kExcused;
  wanted_ = is_answered ? std::nullopt : std::optional(outcome.wanted);
  if (is_answered) return;
  outcome.what = fmt::format("{}, process {}, {} {}: {} after {:.0f} ms, expected {}", name_,
                             process(), turn.path, turn.body, DescriptionOf(reply),
                             ToMilliseconds(outcome.answered - outcome.sent), turn.answer);
}

void Function::Kill() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_killed_ = true;
  if (process_ != nullptr) kill(-process_->pid(), SIGKILL);
}

pid_t Function::process() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return process_ == nullptr ? 0 : process_->pid();
}

std::string Function::Report() {
  std::string text = "its last requests:\n";
  for (const std::string& request : last_requests_) text += "  " + request + "\n";
  const auto status = process_->Wait(Duration::zero());
  text += status ? fmt::format("it has ended: {}\n", *status) : std::string("it lives\n");
  return text + "stdout:\n" + EndOf(process_->Stdout()) + "stderr:\n" + EndOf(process_->Stderr());
}

}  // namespace torpor::chaos
