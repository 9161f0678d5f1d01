// Recurrent layers and dropout among a session's cuDNN calls.
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "nvidia/cudnn/recurrent_checks.h"
#include "proto/cuda_api/cudnn_arguments.h"
#include "proto/cuda_api/device_arguments.h"
#include "proto/cuda_api/refusals.h"
#include "server/executor/library/cudnn_calls.h"

namespace torpor::executor {

using cuda_api::Access;
using cuda_api::CallStatus;
using cuda_api::CudnnInvocation;
using cuda_api::DeviceArgument;

namespace {

constexpr char kForward[] = "cudnnRNNForward";
constexpr char kBackwardData[] = "cudnnRNNBackwardData_v8";
constexpr char kBackwardWeights[] = "cudnnRNNBackwardWeights_v8";
constexpr char kParameters[] = "cudnnGetRNNWeightParams";
constexpr char kTempSpaces[] = "cudnnGetRNNTempSpaceSizes";
constexpr char kDropout[] = "cudnnSetDropoutDescriptor";

cudnnForwardMode_t ModeOf(std::uint32_t is_training) {
  return is_training != 0 ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
}

// Device memory of states, which a program may omit.
class StatesArgument : public DeviceArgument {
 public:
  StatesArgument(cuda_api::CallMemory& memory, std::uint64_t address, const DnnTensor& shape,
                 Access access)
      : DeviceArgument(memory, address, address == 0 || shape.rank == 0 ? 0 : DnnBytes(shape),
                       access) {}
};

// Arguments of all computations besides the data.
struct Spaces {
  template <typename Command>
  Spaces(cuda_api::CallMemory& memory, const Command& command, Access of_weights)
      : weights(memory, command.weights, command.weights_bytes, of_weights),
        workspace(memory, command.workspace, command.workspace_bytes, Access::kWrite),
        reserve(memory, command.reserve, command.reserve_bytes, Access::kReadWrite) {}
  bool ok() const { return weights.ok() && workspace.ok() && reserve.ok(); }

  const DeviceArgument weights;
  const DeviceArgument workspace;
  const DeviceArgument reserve;
};

// The descriptors of one call of the library.
struct RealShapes {
  RealShapes(CudnnInvocation& invocation, const DnnRnnShapes& s)
      : rnn(invocation.Real(s.rnn)),
        x(invocation.Real(s.x)),
        y(invocation.Real(s.y)),
        hidden(s.hidden.rank == 0 ? nullptr : invocation.Real(s.hidden)),
        cell(s.cell.rank == 0 ? nullptr : invocation.Real(s.cell)) {}

  const cudnnRNNDescriptor_t rnn;
  const cudnnRNNDataDescriptor_t x;
  const cudnnRNNDataDescriptor_t y;
  const cudnnTensorDescriptor_t hidden;
  const cudnnTensorDescriptor_t cell;
};

CallStatus InvalidShapes(const char* symbol, const char* fault) {
  return cuda_api::CallFailed(CUDNN_STATUS_BAD_PARAM, absl::StrCat(symbol, ": ", fault));
}

// A descriptor that receives shapes from the library; null if the library cannot create a
// descriptor.
class ShapeReader {
 public:
  explicit ShapeReader(const cuda_api::CudnnFunctions& f) : f_(f) {
    if (f.cudnnCreateTensorDescriptor(&real_) != CUDNN_STATUS_SUCCESS) real_ = nullptr;
  }
  ~ShapeReader() {
    if (real_ != nullptr) f_.cudnnDestroyTensorDescriptor(real_);
  }
  ShapeReader(const ShapeReader&) = delete;
  ShapeReader& operator=(const ShapeReader&) = delete;

  cudnnTensorDescriptor_t real() const { return real_; }
  cudnnStatus_t Read(DnnTensor& shape) const {
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnStatus_t status = f_.cudnnGetTensorNdDescriptor(
        real_, kDnnMaxDims, &type, &shape.rank, shape.dims.data(), shape.strides.data());
    shape.type = type;
    return status;
  }

 private:
  const cuda_api::CudnnFunctions& f_;
  cudnnTensorDescriptor_t real_ = nullptr;
};

// Asks for all linear layers of a pseudo layer. Addresses are only used in arithmetic, so any base
// will do.
cudnnStatus_t ReadParameters(const cuda_api::CudnnFunctions& f, cudnnHandle_t handle,
                             cudnnRNNDescriptor_t rnn, std::int32_t layer, std::int32_t count,
                             std::vector<wire::CudnnRnnParameter>& parameters) {
  const ShapeReader matrix(f);
  const ShapeReader bias(f);
  if (matrix.real() == nullptr || bias.real() == nullptr)
    return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  std::size_t bytes = 0;
  cudnnStatus_t status = f.cudnnGetRNNWeightSpaceSize(handle, rnn, &bytes);
  char* const base = reinterpret_cast<char*>(std::uintptr_t{1} << 32);
  for (std::int32_t i = 0; i < count && status == CUDNN_STATUS_SUCCESS; ++i) {
    void* at_matrix = nullptr;
    void* at_bias = nullptr;
    status = f.cudnnGetRNNWeightParams(handle, rnn, layer, bytes, base, i, matrix.real(),
                                       &at_matrix, bias.real(), &at_bias);
    if (status != CUDNN_STATUS_SUCCESS) break;
    wire::CudnnRnnParameter& one = parameters.emplace_back();
    const auto tell = [&](const ShapeReader& from, const void* at, DnnTensor& shape,
                          std::uint64_t& offset) {
      if (at == nullptr || status != CUDNN_STATUS_SUCCESS) return;
      status = from.Read(shape);
      offset = static_cast<std::uint64_t>(static_cast<const char*>(at) - base);
    };
    tell(matrix, at_matrix, one.matrix, one.matrix_offset);
    tell(bias, at_bias, one.bias, one.bias_offset);
  }
  return status;
}

}  // namespace

cudnnRNNDescriptor_t CudnnCalls::Real(const DnnRnn& value) {
  DnnRnn real = value;
  const DeviceArgument states(*this, real.dropout.states, real.dropout.states_bytes,
                              Access::kReadWrite);
  if (!states.ok()) return nullptr;
  real.dropout.states = reinterpret_cast<std::uint64_t>(states.as<void>());
  return descriptors_.Get(real, handle_);
}

CallStatus CudnnCalls::CudnnRnnForward(const wire::CudnnRnnForward& command) {
  const DnnRnnShapes& shapes = command.shapes;
  if (const char* const fault = DnnFault(shapes)) return InvalidShapes(kForward, fault);
  const DeviceArgument x(*this, command.x, DnnBytes(shapes.x), Access::kRead);
  // y may keep old values beyond the end of a sequence, hence read and write.
  const DeviceArgument y(*this, command.y, DnnBytes(shapes.y), Access::kReadWrite);
  const StatesArgument hx(*this, command.hx, shapes.hidden, Access::kRead);
  const StatesArgument hy(*this, command.hy, shapes.hidden, Access::kWrite);
  const StatesArgument cx(*this, command.cx, shapes.cell, Access::kRead);
  const StatesArgument cy(*this, command.cy, shapes.cell, Access::kWrite);
  const Spaces spaces(*this, command, Access::kRead);
  if (!(x.ok() && y.ok() && hx.ok() && hy.ok() && cx.ok() && cy.ok() && spaces.ok()))
    return cuda_api::ForeignMemory(CUDNN_STATUS_BAD_PARAM, kForward);
  const auto forward = functions().cudnnRNNForward;
  CudnnInvocation invocation(*this, kForward, forward != nullptr, command.stream);
  const RealShapes real(invocation, shapes);
  if (!invocation.ok()) return invocation.refusal();
  return invocation.Done(forward(
      invocation.handle(), real.rnn, ModeOf(command.is_training), nullptr, real.x, x.as<void>(),
      real.y, y.as<void>(), real.hidden, hx.as<void>(), hy.as<void>(), real.cell, cx.as<void>(),
      cy.as<void>(), command.weights_bytes, spaces.weights.as<void>(), command.workspace_bytes,
      spaces.workspace.as<void>(), command.reserve_bytes, spaces.reserve.as<void>()));
}

CallStatus CudnnCalls::CudnnRnnBackwardData(const wire::CudnnRnnBackwardData& command) {
  const DnnRnnShapes& shapes = command.shapes;
  if (const char* const fault = DnnFault(shapes)) return InvalidShapes(kBackwardData, fault);
  const DeviceArgument y(*this, command.y, DnnBytes(shapes.y), Access::kRead);
  const DeviceArgument dy(*this, command.dy, DnnBytes(shapes.y), Access::kRead);
  const DeviceArgument dx(*this, command.dx, DnnBytes(shapes.x), Access::kReadWrite);
  const StatesArgument hx(*this, command.hx, shapes.hidden, Access::kRead);
  const StatesArgument dhy(*this, command.dhy, shapes.hidden, Access::kRead);
  const StatesArgument dhx(*this, command.dhx, shapes.hidden, Access::kWrite);
  const StatesArgument cx(*this, command.cx, shapes.cell, Access::kRead);
  const StatesArgument dcy(*this, command.dcy, shapes.cell, Access::kRead);
  const StatesArgument dcx(*this, command.dcx, shapes.cell, Access::kWrite);
  const Spaces spaces(*this, command, Access::kRead);
  if (!(y.ok() && dy.ok() && dx.ok() && hx.ok() && dhy.ok() && dhx.ok() && cx.ok() && dcy.ok() &&
        dcx.ok() && spaces.ok())) {
    return cuda_api::ForeignMemory(CUDNN_STATUS_BAD_PARAM, kBackwardData);
  }
  const auto backward = functions().cudnnRNNBackwardData_v8;
  CudnnInvocation invocation(*this, kBackwardData, backward != nullptr, command.stream);
  const RealShapes real(invocation, shapes);
  if (!invocation.ok()) return invocation.refusal();
  return invocation.Done(
      backward(invocation.handle(), real.rnn, nullptr, real.y, y.as<void>(), dy.as<void>(), real.x,
               dx.as<void>(), real.hidden, hx.as<void>(), dhy.as<void>(), dhx.as<void>(), real.cell,
               cx.as<void>(), dcy.as<void>(), dcx.as<void>(), command.weights_bytes,
               spaces.weights.as<void>(), command.workspace_bytes, spaces.workspace.as<void>(),
               command.reserve_bytes, spaces.reserve.as<void>()));
}

CallStatus CudnnCalls::CudnnRnnBackwardWeights(const wire::CudnnRnnBackwardWeights& command) {
  const DnnRnnShapes& shapes = command.shapes;
  if (const char* const fault = DnnFault(shapes)) return InvalidShapes(kBackwardWeights, fault);
  const DeviceArgument x(*this, command.x, DnnBytes(shapes.x), Access::kRead);
  const DeviceArgument y(*this, command.y, DnnBytes(shapes.y), Access::kRead);
  const StatesArgument hx(*this, command.hx, shapes.hidden, Access::kRead);
  const Spaces spaces(*this, command, Access::kReadWrite);
  if (!(x.ok() && y.ok() && hx.ok() && spaces.ok()))
    return cuda_api::ForeignMemory(CUDNN_STATUS_BAD_PARAM, kBackwardWeights);
  const auto backward = functions().cudnnRNNBackwardWeights_v8;
  CudnnInvocation invocation(*this, kBackwardWeights, backward != nullptr, command.stream);
  const RealShapes real(invocation, shapes);
  if (!invocation.ok()) return invocation.refusal();
  return invocation.Done(backward(invocation.handle(), real.rnn,
                                  command.adds != 0 ? CUDNN_WGRAD_MODE_ADD : CUDNN_WGRAD_MODE_SET,
                                  nullptr, real.x, x.as<void>(), real.hidden, hx.as<void>(), real.y,
                                  y.as<void>(), command.weights_bytes, spaces.weights.as<void>(),
                                  command.workspace_bytes, spaces.workspace.as<void>(),
                                  command.reserve_bytes, spaces.reserve.as<void>()));
}

CallStatus CudnnCalls::CudnnRnnParameters(const wire::CudnnRnnParameters& command,
                                          wire::CudnnRnnParametersResult& result) {
  if (!DnnIsValid(command.rnn) ||
      command.layer >= static_cast<std::uint32_t>(DnnPseudoLayers(command.rnn))) {
    return cuda_api::InvalidArguments(CUDNN_STATUS_BAD_PARAM, kParameters);
  }
  const cuda_api::CudnnFunctions& f = functions();
  const bool exists =
      f.cudnnGetRNNWeightParams != nullptr && f.cudnnGetRNNWeightSpaceSize != nullptr &&
      f.cudnnGetTensorNdDescriptor != nullptr && f.cudnnCreateTensorDescriptor != nullptr;
  CudnnInvocation invocation(*this, kParameters, exists, StreamSet::kLegacy);
  const auto rnn = invocation.Real(command.rnn);
  if (!invocation.ok()) return invocation.refusal();
  return invocation.Done(ReadParameters(f, invocation.handle(), rnn,
                                        static_cast<std::int32_t>(command.layer),
                                        DnnLinearLayers(command.rnn), result.parameters));
}

CallStatus CudnnCalls::CudnnRnnTempSpaces(const wire::CudnnRnnTempSpaces& command,
                                          wire::CudnnRnnTempSpacesResult& result) {
  if (!DnnIsValid(command.rnn) || !DnnIsValid(command.x))
    return cuda_api::InvalidArguments(CUDNN_STATUS_BAD_PARAM, kTempSpaces);
  const auto ask = functions().cudnnGetRNNTempSpaceSizes;
  CudnnInvocation invocation(*this, kTempSpaces, ask != nullptr, StreamSet::kLegacy);
  const auto rnn = invocation.Real(command.rnn);
  const auto x = invocation.Real(command.x);
  if (!invocation.ok()) return invocation.refusal();
  std::size_t workspace = 0;
  std::size_t reserve = 0;
  CallStatus status =
      invocation.Done(ask(invocation.handle(), rnn, ModeOf(command.is_training), x, &workspace,
                          command.is_training != 0 ? &reserve : nullptr));
  result.workspace_bytes = workspace;
  result.reserve_bytes = reserve;
  return status;
}

CallStatus CudnnCalls::CudnnDropoutStates(const wire::CudnnDropoutStates& command) {
  const DnnDropout& value = command.dropout;
  if (!DnnIsValid(value)) return cuda_api::InvalidArguments(CUDNN_STATUS_BAD_PARAM, kDropout);
  const DeviceArgument states(*this, value.states, value.states_bytes, Access::kWrite);
  if (!states.ok()) return cuda_api::ForeignMemory(CUDNN_STATUS_BAD_PARAM, kDropout);
  const cuda_api::CudnnFunctions& f = functions();
  const bool exists = f.cudnnCreateDropoutDescriptor != nullptr &&
                      f.cudnnSetDropoutDescriptor != nullptr &&
                      f.cudnnDestroyDropoutDescriptor != nullptr;
  const CudnnInvocation invocation(*this, kDropout, exists, command.stream);
  if (!invocation.ok()) return invocation.refusal();
  cudnnDropoutDescriptor_t real = nullptr;
  cudnnStatus_t status = f.cudnnCreateDropoutDescriptor(&real);
  if (status != CUDNN_STATUS_SUCCESS) return invocation.Done(status);
  status = f.cudnnSetDropoutDescriptor(real, invocation.handle(), value.probability,
                                       states.as<void>(), value.states_bytes, value.seed);
  f.cudnnDestroyDropoutDescriptor(real);
  return invocation.Done(status);
}

}  // namespace torpor::executor
