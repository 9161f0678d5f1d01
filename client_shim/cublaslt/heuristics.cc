#include "client_shim/cublaslt/heuristics.h"

#include <utility>

#include "client_shim/cublas/status.h"

namespace torpor::shim {

CublasLtHeuristics& CublasLtHeuristics::Get() {
  static auto* const heuristics = new CublasLtHeuristics;
  return *heuristics;
}

cublasStatus_t CublasLtHeuristics::Ask(ClientCore& core, const wire::CublasLtProblem& problem,
                                       const LtMatmulPreference& preference,
                                       std::uint32_t requested,
                                       std::vector<wire::CublasLtAnswer>& answers) {
  wire::CublasLtMatmulHeuristic command;
  command.problem = wire::LtWithoutAddresses(problem);
  command.preference = preference;
  command.requested = requested;
  const std::vector<std::uint8_t> fields = wire::Encoded(command);
  std::string question = std::to_string(core.device()) + ":";
  question.append(fields.begin(), fields.end());
  Known known;
  if (!Find(question, known)) {
    CallReply reply;
    if (const cudaError_t error = core.Call({command.kCallId, fields}, reply))
      return CublasStatusOf(error);
    if (!reply.message.empty()) core.WarnOnce(reply.message, reply.message);
    known.status = static_cast<cublasStatus_t>(reply.status);
    if (known.status == CUBLAS_STATUS_SUCCESS) {
      wire::CublasLtMatmulHeuristicResult result;
      wire::Reader reader(reply.result);
      reader(result);
      if (!reader.done() || result.answers.size() > requested) return CUBLAS_STATUS_INTERNAL_ERROR;
      known.answers = std::move(result.answers);
    }
    Keep(std::move(question), known);
  }
  answers = std::move(known.answers);
  return known.status;
}

bool CublasLtHeuristics::Find(const std::string& question, Known& known) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(question);
  if (found == known_.end()) return false;
  known = found->second;
  return true;
}

void CublasLtHeuristics::Keep(std::string question, Known known) {
  const std::lock_guard lock(mutex_);
  // A program with more shapes than `capacity_` no longer needs the oldest ones.
  if (known_.size() >= capacity_) known_.clear();
  if (capacity_ > 0) known_.insert_or_assign(std::move(question), std::move(known));
}

std::size_t CublasLtHeuristics::capacity() const {
  const std::lock_guard lock(mutex_);
  return capacity_;
}

void CublasLtHeuristics::SetCapacity(std::size_t capacity) {
  const std::lock_guard lock(mutex_);
  capacity_ = capacity;
  if (known_.size() > capacity_) known_.clear();
}

}  // namespace torpor::shim
