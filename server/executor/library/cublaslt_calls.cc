#include "server/executor/library/cublaslt_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/cuda_api/device_arguments.h"
#include "proto/cuda_api/refusals.h"
#include "server/executor/library/cublaslt_descriptors.h"

namespace torpor::executor {

using cuda_api::Access;
using cuda_api::CallFailed;
using cuda_api::CallStatus;
using cuda_api::DeviceArgument;
using cuda_api::ScalarArgument;

namespace {

constexpr char kMatmul[] = "cublasLtMatmul";
constexpr std::size_t kMaxQuestions = 8192;

CallStatus Refused(const char* symbol, cublasStatus_t status) {
  return CallFailed(status, absl::StrCat(symbol, ": cuBLASLt returned status ", int{status}));
}

CallStatus NoLibrary(const char* symbol) {
  return CallFailed(CUBLAS_STATUS_NOT_INITIALIZED,
                    absl::StrCat(symbol, ": the executor found no libcublasLt.so.13"));
}

bool ScalarsAreWherePointerModeSays(const wire::CublasLtMatmul& c) {
  const bool on_device = c.problem.matmul.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
  return (c.alpha.address != 0) == on_device && (c.beta.address != 0) == on_device;
}

// With a zero beta the library does not read C.
bool BetaIsZero(const wire::CublasLtMatmul& c) {
  return c.beta.address == 0 && std::all_of(c.beta.value.begin(), c.beta.value.end(),
                                            [](std::uint8_t byte) { return byte == 0; });
}

// The memory of a matmul's arguments, all checked to be the session's.
struct Memory {
  Memory(cuda_api::CallMemory& memory, const wire::CublasLtMatmul& c)
      : matmul(c.problem.matmul),
        alpha(memory, c.alpha, wire::LtScalarBytes(matmul.scale_type)),
        beta(memory, c.beta, wire::LtScalarBytes(matmul.scale_type)),
        a(memory, c.A, wire::LtLayoutBytes(c.problem.a), Access::kRead),
        b(memory, c.B, wire::LtLayoutBytes(c.problem.b), Access::kRead),
        c(memory, c.C, BetaIsZero(c) && c.C != c.D ? 0 : wire::LtLayoutBytes(c.problem.c),
          Access::kRead),
        d(memory, c.D, wire::LtLayoutBytes(c.problem.d), Access::kWrite),
        workspace(memory, c.workspace, c.workspace_bytes, Access::kWrite) {
    Check(alpha), Check(beta), Check(a), Check(b), Check(this->c), Check(d), Check(workspace);
    Place(memory, matmul.bias, wire::LtBiasBytes(c.problem),
          LtBiasIsWritten(matmul) ? Access::kWrite : Access::kRead);
    Place(memory, matmul.aux, wire::LtAuxBytes(c.problem),
          LtAuxIsWritten(matmul) ? Access::kWrite : Access::kRead);
    for (std::uint64_t* scale :
         {&matmul.a_scale, &matmul.b_scale, &matmul.c_scale, &matmul.d_scale}) {
      Place(memory, *scale, *scale == 0 ? 0 : sizeof(float), Access::kRead);
    }
    Place(memory, matmul.amax_d, matmul.amax_d == 0 ? 0 : sizeof(float), Access::kWrite);
  }

  template <typename Argument>
  void Check(const Argument& argument) {
    ok = ok && argument.ok();
  }
  // Replaces an address of the descriptor by the GPU's address.
  void Place(cuda_api::CallMemory& memory, std::uint64_t& address, std::uint64_t bytes,
             Access access) {
    const DeviceArgument argument(memory, address, bytes, access);
    Check(argument);
    address = reinterpret_cast<std::uint64_t>(argument.as<void>());
  }

  bool ok = true;
  LtMatmulDescriptor matmul;  // with the GPU's addresses
  ScalarArgument alpha;
  ScalarArgument beta;
  DeviceArgument a;
  DeviceArgument b;
  DeviceArgument c;
  DeviceArgument d;
  DeviceArgument workspace;
};

}  // namespace

CallStatus CublasLtCalls::CublasLtMatmul(const wire::CublasLtMatmul& command) {
  if (!wire::LtProblemIsValid(command.problem) || !ScalarsAreWherePointerModeSays(command)) {
    return cuda_api::InvalidArguments(CUBLAS_STATUS_INVALID_VALUE, kMatmul);
  }
  const Memory memory(memory_, command);
  if (!memory.ok) return cuda_api::ForeignMemory(CUBLAS_STATUS_INVALID_VALUE, kMatmul);
  const cublasLtHandle_t handle = library_.Handle();
  if (handle == nullptr) return NoLibrary(kMatmul);
  CUstream stream = nullptr;
  if (streams_.Use(command.stream, stream) != CUDA_SUCCESS) {
    return CallFailed(CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmul: invalid or destroyed stream");
  }
  wire::CublasLtProblem problem = command.problem;
  problem.matmul = memory.matmul;
  const CublasLtDescriptors real(library_.functions(), problem);
  if (!real.ok()) return Refused(kMatmul, CUBLAS_STATUS_NOT_SUPPORTED);
  const cublasStatus_t status = library_.functions().matmul(
      handle, real.matmul(), memory.alpha.as<void>(), memory.a.as<void>(), real.a(),
      memory.b.as<void>(), real.b(), memory.beta.as<void>(), memory.c.as<void>(), real.c(),
      memory.d.as<void>(), real.d(), Find(command), memory.workspace.as<void>(),
      command.workspace_bytes, stream);
  return status == CUBLAS_STATUS_SUCCESS ? CallStatus() : Refused(kMatmul, status);
}

CallStatus CublasLtCalls::CublasLtMatmulHeuristic(const wire::CublasLtMatmulHeuristic& command,
                                                  wire::CublasLtMatmulHeuristicResult& result) {
  constexpr char kSymbol[] = "cublasLtMatmulAlgoGetHeuristic";
  if (!wire::LtProblemIsValid(command.problem) || command.requested < 1 ||
      command.requested > wire::kMaxLtAlgorithms) {
    return cuda_api::InvalidArguments(CUBLAS_STATUS_INVALID_VALUE, kSymbol);
  }
  if (library_.Handle() == nullptr) return NoLibrary(kSymbol);
  const Answers* answers = nullptr;
  const cublasStatus_t status = Ask(command, answers);
  if (status != CUBLAS_STATUS_SUCCESS) return Refused(kSymbol, status);
  for (const cublasLtMatmulHeuristicResult_t& answer : *answers) {
    result.answers.push_back({answer.state, answer.wavesCount, answer.workspaceSize});
  }
  return {};
}

cublasStatus_t CublasLtCalls::Ask(const wire::CublasLtMatmulHeuristic& question,
                                  const Answers*& answers) {
  wire::CublasLtMatmulHeuristic asked = question;
  asked.problem = wire::LtWithoutAddresses(question.problem);
  const std::vector<std::uint8_t> fields = wire::Encoded(asked);
  std::string key(fields.begin(), fields.end());
  if (const auto found = answers_.find(key); found != answers_.end()) {
    answers = &found->second;
    return CUBLAS_STATUS_SUCCESS;
  }
  const CublasLtDescriptors real(library_.functions(), asked.problem);
  const CublasLtPreference preference(library_.functions(), asked.preference);
  if (!real.ok() || !preference.ok()) return CUBLAS_STATUS_NOT_SUPPORTED;
  Answers given(asked.requested);
  int count = 0;
  const cublasStatus_t status = library_.functions().get_heuristic(
      library_.Handle(), real.matmul(), real.a(), real.b(), real.c(), real.d(), preference.get(),
      static_cast<int>(asked.requested), given.data(), &count);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  given.resize(static_cast<std::size_t>(std::max(count, 0)));
  if (answers_.size() >= kMaxQuestions) answers_.clear();
  answers = &answers_.insert_or_assign(std::move(key), std::move(given)).first->second;
  return status;
}

const cublasLtMatmulAlgo_t* CublasLtCalls::Find(const wire::CublasLtMatmul& command) {
  const wire::CublasLtAlgorithm& chosen = command.algorithm;
  if (chosen.requested < 1 || chosen.requested > wire::kMaxLtAlgorithms) return nullptr;
  wire::CublasLtMatmulHeuristic question;
  question.problem = command.problem;
  question.preference = chosen.preference;
  question.requested = chosen.requested;
  const Answers* answers = nullptr;
  // A program may refer to an algorithm of another problem; the library then chooses.
  if (Ask(question, answers) != CUBLAS_STATUS_SUCCESS || chosen.place >= answers->size()) {
    return nullptr;
  }
  const cublasLtMatmulHeuristicResult_t& answer = (*answers)[chosen.place];
  const bool fits = answer.workspaceSize <= command.workspace_bytes;
  return answer.state == CUBLAS_STATUS_SUCCESS && fits ? &answer.algo : nullptr;
}

}  // namespace torpor::executor
