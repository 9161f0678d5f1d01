#include "tests/e2e/example_fleet.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iterator>
#include <utility>

#include "base/status_macros.h"
#include "tests/e2e/await_status.h"

namespace torpor::e2e {
namespace {

// An order of use is known when two leases in a row had the one before's, and images are looked
// through when they come to a GPU.
constexpr int kWarmRounds = 4;
constexpr int kColdRounds = 3;

std::string ExampleProgram(const std::string& name) {
  return std::string(TORPOR_BIN_DIR) + "/examples/" + name;
}

std::string NameOf(const std::vector<ExampleModel>& models, std::size_t function) {
  return fmt::format("{}-{}", models[function % models.size()].name, function / models.size());
}

void Append(std::vector<std::string>* words, const std::vector<std::string>& more) {
  words->insert(words->end(), more.begin(), more.end());
}

absl::Status CheckReply(const ExampleFleet::Function& function, const loadgen::Exchange& exchange,
                        const Reply& reply) {
  if (reply.status != 200) {
    return absl::AbortedError(
        fmt::format("{}: HTTP status {}: {}", function.name, reply.status, reply.body));
  }
  absl::Status right = loadgen::CheckAnswer(exchange, reply.body);
  if (right.ok()) return right;
  return absl::AbortedError(function.name + ": a wrong answer " + std::string(right.message()));
}

}  // namespace

ExampleModel EncoderModel(const std::string& name, int layers, int hidden, int vocabulary) {
  return {.name = name,
          .program = "encoder",
          .path = "/encode",
          .shape = {"--layers", std::to_string(layers), "--hidden", std::to_string(hidden),
                    "--vocabulary", std::to_string(vocabulary)},
          // The reference is slow, and a request's length should not decide what it takes.
          .requests = {"--count", "2", "--least-tokens", "8", "--most-tokens", "8"},
          .has_seed = true};
}

ExampleModel DigitsModel(const std::string& name) {
  return {.name = name, .program = "digits", .path = "/predict", .requests = {"--count", "8"}};
}

std::vector<emulator::KernelTime> ExampleKernelTimes() {
  return {{"*AttentionSoftmax*", 250}, {"*AddBiasGelu*", 250}, {"*BiasSoftmax*", 600}};
}

std::vector<std::string> ExampleFleet::Names(const std::vector<ExampleModel>& models,
                                             std::size_t count) {
  std::vector<std::string> names;
  names.reserve(count);
  for (std::size_t i = 0; i < count; ++i) names.push_back(NameOf(models, i));
  return names;
}

ExampleFleet::ExampleFleet(EmulatedNode& node, std::vector<ExampleModel> models, std::size_t count)
    : node_(node), models_(std::move(models)) {
  functions_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = NameOf(models_, i);
    const std::size_t model = i % models_.size();
    functions_.push_back({name, model, "/function/" + name + models_[model].path,
                          node_.folder().path() + "/" + name + ".jsonl"});
  }
}

std::vector<std::string> ExampleFleet::ShapeOf(std::size_t function) const {
  const ExampleModel& model = models_[functions_[function].model];
  std::vector<std::string> shape = model.shape;
  if (model.has_seed) Append(&shape, {"--seed", std::to_string(function + 1)});
  return shape;
}

absl::Status ExampleFleet::ReadAnswers(Function& function, std::size_t index) const {
  const ExampleModel& model = models_[function.model];
  std::vector<std::string> arguments = {"--write-expected", function.expected_file};
  Append(&arguments, model.requests);
  Append(&arguments, ShapeOf(index));
  const auto reference =
      RunToItsEnd("examples/" + model.program + "-reference", arguments, node_.folder().path());
  if (reference->Wait(Duration::zero()) != 0) {
    return absl::AbortedError(model.program + "-reference: " + reference->Stderr());
  }
  TORPOR_ASSIGN_OR_RETURN(function.exchanges, loadgen::ReadExchanges(function.expected_file));
  return absl::OkStatus();
}

absl::Status ExampleFleet::Start() {
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    Function& function = functions_[i];
    TORPOR_RETURN_IF_ERROR(ReadAnswers(function, i));
    std::vector<std::string> command = {ExampleProgram(models_[function.model].program)};
    Append(&command, ShapeOf(i));
    node_.StartFunction(function.name, command);
    if (testing::Test::HasFatalFailure()) return absl::AbortedError(function.name + ": no start");
  }
  return Learn();
}

absl::Status ExampleFleet::Learn() const {
  for (int i = 0; i < kWarmRounds; ++i) TORPOR_RETURN_IF_ERROR(AskAll());
  for (int i = 0; i < kColdRounds; ++i) {
    TORPOR_RETURN_IF_ERROR(EvictAll());
    TORPOR_RETURN_IF_ERROR(AskAll());
  }
  return AwaitIdle();
}

void ExampleFleet::Stop() {
  for (const Function& function : functions_) node_.StopFunction(function.name);
}

absl::StatusOr<Reply> ExampleFleet::Ask(std::size_t function) const {
  const loadgen::Exchange& exchange = functions_[function].exchanges.front();
  Reply reply = node_.PostOne(functions_[function].path, exchange.body);
  TORPOR_RETURN_IF_ERROR(CheckReply(functions_[function], exchange, reply));
  return reply;
}

absl::Status ExampleFleet::AskAll() const {
  std::vector<Post> posts;
  posts.reserve(functions_.size());
  for (const Function& function : functions_) {
    posts.push_back({function.path, function.exchanges.front().body});
  }
  const std::vector<Reply> replies = node_.PostAll(posts);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    TORPOR_RETURN_IF_ERROR(CheckReply(functions_[i], functions_[i].exchanges.front(), replies[i]));
  }
  return absl::OkStatus();
}

absl::Status ExampleFleet::EvictAll() const {
  for (const Function& function : functions_) {
    TORPOR_RETURN_IF_ERROR(EvictWhenIdle(admin_socket(), function.name));
  }
  return absl::OkStatus();
}

absl::Status ExampleFleet::AwaitIdle() const {
  return AwaitStatus(admin_socket(), "no GPU is leased", IsIdle);
}

}  // namespace torpor::e2e
