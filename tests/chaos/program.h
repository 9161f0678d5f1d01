#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/e2e/sequence_model.h"

namespace torpor::chaos {

// A function's program, and a model that knows the right answers.
class Program {
 public:
  virtual ~Program() = default;

  // Without the flags for its address.
  virtual std::vector<std::string> Command() const = 0;
  // A new process has nothing of the one before.
  virtual void Begin() = 0;
  // The next request, whose effect the model has taken: a request that is lost, or carried out
  // twice, makes all answers wrong from then on.
  virtual e2e::Turn Next(std::mt19937& random) = 0;
  // A request that changes nothing. The answer is another one after each request that has changed
  // something.
  virtual e2e::Turn Inquiry() const = 0;
  // The model as it is now.
  virtual std::unique_ptr<Program> Clone() const = 0;
};

// Of each `number` another one: a hash of all that it was sent, in GPU memory (chain_server); a
// sequence that grows, with blocks of memory that come and go (sequence_server); layers that are
// read, by pointers in GPU memory, too, and now and then written (layers_server).
// `has_pointers`: kernels may follow pointers in GPU memory (docs/memory.md: not with
// address_mode: translate).
std::unique_ptr<Program> MakeProgram(unsigned number, bool has_pointers);

}  // namespace torpor::chaos
