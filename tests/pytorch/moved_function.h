#pragma once

#include <string>
#include <utility>

#include "nlohmann/json.hpp"
#include "tests/e2e/emulated_node.h"

namespace torpor::e2e {

// A node's function of one instance, which the test moves between requests. What fails is a failure
// of the test's.
class MovedFunction {
 public:
  MovedFunction(const EmulatedNode& node, std::string name) : node_(node), name_(std::move(name)) {}

  // Posts an empty object there, and waits until the function is idle.
  nlohmann::json Ask(const std::string& path) const;

  // The one that it is on.
  int Gpu() const { return node_.ResidentGpus(name_).at(0); }
  void Evict() const;
  void LoadTo(int gpu) const;

 private:
  const EmulatedNode& node_;
  const std::string name_;
};

}  // namespace torpor::e2e
