#include "tests/chaos/function.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace torpor::chaos {
namespace {

constexpr auto kStartPatience = std::chrono::seconds(60);
constexpr std::size_t kRequestsTold = 20;
constexpr std::size_t kMaxOutput = 16 << 10;

std::string EndOf(const std::string& text) {
  return text.substr(text.size() - std::min(text.size(), kMaxOutput));
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
    : node_(node), name_(std::move(name)), program_(std::move(program)), random_(seed) {}

absl::Status Function::Start() {
  std::vector<std::string> command = program_->Command();
  command.insert(command.end(), {"--port", std::to_string(node_.PortOf(name_))});
  std::unique_ptr<e2e::ChildProcess> before;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    before = std::move(process_);
  }
  before.reset();
  program_->Begin();
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

Outcome Function::Ask() {
  const e2e::Turn turn = program_->Next(random_);
  last_requests_.push_back(turn.path + " " + turn.body);
  if (last_requests_.size() > kRequestsTold) last_requests_.pop_front();
  Outcome outcome;
  outcome.sent = SteadyClock().Now();
  const e2e::Reply reply = node_.PostOne("/function/" + name_ + "/" + turn.path, turn.body);
  outcome.answered = SteadyClock().Now();
  if (reply.status == 200 && reply.body == turn.answer) return outcome;
  if (reply.status != 200 && is_killed_) {
    outcome.kind = Outcome::Kind::kExcused;
    return outcome;
  }
  outcome.kind = reply.status == 200 ? Outcome::Kind::kWrong : Outcome::Kind::kFailed;
  outcome.what = fmt::format("{}, process {}, {} {}: {} after {:.0f} ms, expected {}", name_,
                             process(), turn.path, turn.body, DescriptionOf(reply),
                             ToMilliseconds(outcome.answered - outcome.sent), turn.answer);
  return outcome;
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
