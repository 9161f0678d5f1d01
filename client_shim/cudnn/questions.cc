#include "client_shim/cudnn/questions.h"

#include <utility>

#include "client_shim/cudnn/handle_table.h"

namespace torpor::shim {

CudnnQuestions& CudnnQuestions::Get() {
  static auto* const questions = new CudnnQuestions;
  return *questions;
}

cudnnStatus_t CudnnQuestions::Ask(ClientCore& core, std::uint32_t call_id,
                                  std::span<const std::uint8_t> fields,
                                  std::vector<std::uint8_t>& result) {
  std::string question = std::to_string(core.device()) + ":" + std::to_string(call_id) + ":";
  question.append(fields.begin(), fields.end());
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(question); found != known_.end()) {
      result = found->second.result;
      return found->second.status;
    }
  }
  CallReply reply;
  if (const cudaError_t error = core.Call({call_id, fields}, reply)) return CudnnStatusOf(error);
  if (!reply.message.empty()) core.WarnOnce(reply.message, reply.message);
  Known known{static_cast<cudnnStatus_t>(reply.status), std::move(reply.result)};
  result = known.result;
  const cudnnStatus_t status = known.status;
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMax) known_.clear();
  known_.insert_or_assign(std::move(question), std::move(known));
  return status;
}

}  // namespace torpor::shim
