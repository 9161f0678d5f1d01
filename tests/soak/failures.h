#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <string>

namespace torpor::soak {

// Failures of the test, from any thread.
class Failures {
 public:
  void Add(const std::string& what) {
    ++count_;
    ADD_FAILURE() << what;
  }
  int count() const { return count_; }

 private:
  std::atomic<int> count_ = 0;
};

}  // namespace torpor::soak
