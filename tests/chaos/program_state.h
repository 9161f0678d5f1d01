#pragma once

#include <memory>
#include <random>
#include <string>

#include "tests/chaos/program.h"

namespace torpor::chaos {

// What a program has been asked so far. The last request may be in doubt: nobody knows whether the
// program has got it.
class ProgramState {
 public:
  explicit ProgramState(std::unique_ptr<Program> program) : program_(std::move(program)) {}

  const Program& program() const { return *program_; }
  // A new process. Nothing is in doubt.
  void Begin();
  // The next request. Not while one is in doubt.
  e2e::Turn Next(std::mt19937& random);

  // The last request has not reached the program.
  void TakeBack();
  // The last request has had no answer: the program has got it once, or not at all.
  void Doubt() { is_in_doubt_ = true; }
  bool is_in_doubt() const { return is_in_doubt_; }
  // Of a doubt: a request that changes nothing, whose answer tells.
  e2e::Turn Inquiry() const { return program_->Inquiry(); }

  enum class Finding { kDone, kNotDone, kImpossible };
  // The answer to the inquiry. The doubt is over, unless that is an answer of neither state.
  Finding Resolve(const std::string& answer);

 private:
  std::unique_ptr<Program> program_;
  std::unique_ptr<Program> before_;  // the last request; null if there was none
  bool is_in_doubt_ = false;
};

}  // namespace torpor::chaos
