#include "tests/soak/fleet.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace torpor::soak {
namespace {

// A function is never larger than 16 MiB, and 6 MiB in the mean.
constexpr unsigned kLeastTableKilobytes = 256;
constexpr unsigned kMaxTableKilobytes = 6 << 10;
constexpr e2e::TurnLimits kLimits{.block_kilobytes = 1536, .tokens = 512};

constexpr std::size_t kJournalLength = 40;

unsigned Between(unsigned low, unsigned high, std::mt19937& random) {
  return std::uniform_int_distribution<unsigned>(low, high)(random);
}

void RaiseTo(std::atomic<Duration::rep>& highest, Duration::rep value) {
  Duration::rep known = highest;
  while (known < value && !highest.compare_exchange_weak(known, value)) {
  }
}

}  // namespace

Fleet::Fleet(e2e::EmulatedNode& node, const std::vector<std::string>& names, Gate& gate,
             Failures& failures, unsigned seed)
    : node_(node), gate_(gate), failures_(failures), random_(seed) {
  functions_.reserve(names.size());
  for (const std::string& name : names) {
    functions_.push_back(std::make_unique<Function>());
    functions_.back()->name = name;
  }
}

void Fleet::Start() {
  for (const auto& function : functions_) {
    const std::lock_guard<std::mutex> lock(function->mutex);
    StartOne(*function);
    if (testing::Test::HasFailure()) return;
  }
}

void Fleet::StartOne(Function& function) {
  const e2e::SequenceShape shape = {
      .seed = Between(0, 1 << 30, random_),
      .kilobytes = Between(kLeastTableKilobytes, kMaxTableKilobytes, random_),
      .is_paged = Between(0, 1, random_) == 1};
  function.model.emplace(shape);
  function.journal = {::testing::PrintToString(shape.Command())};
  node_.StartFunction(function.name, shape.Command());
}

void Fleet::RestartOne() {
  Function& function = *functions_[random_() % functions_.size()];
  function.is_doomed = true;
  node_.StopFunction(function.name);
  const std::lock_guard<std::mutex> lock(function.mutex);
  StartOne(function);
  function.is_doomed = false;
  ++restarts_;
}

void Fleet::Stop() {
  for (const auto& function : functions_) node_.StopFunction(function->name);
}

void Fleet::AskOne(std::mt19937& random) {
  Function& function = *functions_[random() % functions_.size()];
  if (const std::unique_lock lock(function.mutex, std::try_to_lock); lock && !function.is_doomed) {
    Ask(function, e2e::RandomTurn(*function.model, kLimits, random));
  }
}

void Fleet::AskAll() {
  for (const auto& function : functions_) {
    const std::lock_guard<std::mutex> lock(function->mutex);
    Ask(*function, e2e::RandomTurn(*function->model, kLimits, random_));
    Ask(*function, e2e::BytesTurn(*function->model));
  }
}

void Fleet::Ask(Function& function, const e2e::Turn& turn) {
  function.journal.push_back(turn.path + " " + turn.body);
  if (function.journal.size() > kJournalLength) function.journal.pop_front();
  gate_.Pass();
  const TimePoint begin = SteadyClock().Now();
  const e2e::Reply reply = node_.PostOne("/function/" + function.name + "/" + turn.path, turn.body);
  RaiseTo(slowest_, (SteadyClock().Now() - begin).count());
  const bool is_right = reply.status == 200 && reply.body == turn.answer;
  if (is_right || function.is_doomed) return;
  failures_.Add(fmt::format("{}: HTTP status {}, {}, expected {}{}", function.name, reply.status,
                            reply.body, turn.answer, JournalOf(function)));
}

std::string Fleet::JournalOf(const Function& function) {
  std::string text = "its last requests:\n";
  for (const std::string& line : function.journal) text += "  " + line + "\n";
  return text;
}

std::map<std::string, Bytes> Fleet::AllocatedBytes() const {
  std::map<std::string, Bytes> bytes;
  for (const auto& function : functions_) bytes[function->name] = function->model->bytes();
  return bytes;
}

}  // namespace torpor::soak
