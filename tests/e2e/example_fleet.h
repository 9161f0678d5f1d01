#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "emulator/node/topology.h"
#include "tests/e2e/emulated_node.h"
#include "tools/loadgen/answers.h"

namespace torpor::e2e {

// A model that one of the example programs (examples/) serves.
struct ExampleModel {
  std::string name;                     // its functions are NAME-0, NAME-1, ...
  std::string program;                  // in build/bin/examples, beside PROGRAM-reference
  std::string path;                     // of its requests: "/encode"
  std::vector<std::string> shape{};     // flags of the program and of its reference
  std::vector<std::string> requests{};  // flags of the reference: which ones it answers
  bool has_seed = false;                // of the weights: each function has others
};

ExampleModel EncoderModel(const std::string& name, int layers, int hidden, int vocabulary);
ExampleModel DigitsModel(const std::string& name);

// Modelled times for the kernels of these models: a layer of an encoder takes 0.5 ms, digits take
// 0.6 ms.
std::vector<emulator::KernelTime> ExampleKernelTimes();

// Functions that serve the examples' models on an emulated node, as processes, and requests whose
// right answers the models' references know. Not thread-safe but for Ask.
class ExampleFleet {
 public:
  struct Function {
    std::string name;
    std::size_t model = 0;
    std::string path;           // of requests through the router
    std::string expected_file;  // as torpor-loadgen reads it
    std::vector<loadgen::Exchange> exchanges{};
  };

  // Names of `count` functions of the models in turn.
  static std::vector<std::string> Names(const std::vector<ExampleModel>& models, std::size_t count);

  // The node, which must outlive the fleet, has functions of these names.
  ExampleFleet(EmulatedNode& node, std::vector<ExampleModel> models, std::size_t count);

  // Has the references answer, starts the processes, and lets each function answer as often as it
  // takes until nothing is learned of it any more.
  absl::Status Start();
  // Ends all processes, without asking them.
  void Stop();

  // A request, through the router. An error unless the answer is right.
  absl::StatusOr<Reply> Ask(std::size_t function) const;
  // One to each function at the same time.
  absl::Status AskAll() const;
  // No image is on any GPU afterwards. Waits until no request runs.
  absl::Status EvictAll() const;
  // Waits until no GPU is leased, since an answer may come before its lease has ended.
  absl::Status AwaitIdle() const;

  const EmulatedNode& node() const { return node_; }
  std::string admin_socket() const { return node_.folder().path() + "/admin/admin.sock"; }
  const std::vector<ExampleModel>& models() const { return models_; }
  const std::vector<Function>& functions() const { return functions_; }

 private:
  std::vector<std::string> ShapeOf(std::size_t function) const;
  absl::Status ReadAnswers(Function& function, std::size_t index) const;
  absl::Status Learn() const;

  EmulatedNode& node_;
  const std::vector<ExampleModel> models_;
  std::vector<Function> functions_;
};

}  // namespace torpor::e2e
