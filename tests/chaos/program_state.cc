#include "tests/chaos/program_state.h"

#include <utility>

#include "base/check.h"

namespace torpor::chaos {

void ProgramState::Begin() {
  program_->Begin();
  before_.reset();
  is_in_doubt_ = false;
}

e2e::Turn ProgramState::Next(std::mt19937& random) {
  TORPOR_CHECK(!is_in_doubt_);
  before_ = program_->Clone();
  return program_->Next(random);
}

void ProgramState::TakeBack() { program_ = std::move(before_); }

ProgramState::Finding ProgramState::Resolve(const std::string& answer) {
  const bool was_done = answer == program_->Inquiry().answer;
  if (!was_done && answer != before_->Inquiry().answer) return Finding::kImpossible;
  if (!was_done) TakeBack();
  is_in_doubt_ = false;
  return was_done ? Finding::kDone : Finding::kNotDone;
}

}  // namespace torpor::chaos
