#pragma once

#include <string>

namespace torpor::server {

// Whoever runs the instances' processes, if that is torpord. Called on the controller's thread:
// does not block, and calls back nobody.
class InstanceLives {
 public:
  virtual ~InstanceLives() = default;
  // The instance was removed, and nothing runs on it any more.
  virtual void OnRemoved(const std::string& full_name) = 0;
  // The process can never use a GPU again; another process could.
  virtual void OnBroken(const std::string& full_name, const std::string& why) = 0;
};

}  // namespace torpor::server
