#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "client_shim/c_entry.h"
#include "client_shim/cudnn/cudnn_call.h"
#include "client_shim/cudnn/handle_table.h"
#include "client_shim/cudnn/overrides.h"
#include "client_shim/cudnn/questions.h"
#include "nvidia/cudnn/descriptor_entries.h"
#include "nvidia/cudnn/recurrent_checks.h"
#include "proto/cuda_api/cudnn_commands.h"

// Recurrent layers and the states of dropout. The other entries of the descriptors are in
// nvidia/cudnn/recurrent_entries.cc.
namespace torpor::shim {
namespace {

cudnnStatus_t Refuse(const std::string& symbol, const char* fault) {
  const std::string line = symbol + ": " + fault;
  torpor_client_core()->WarnOnce(line, line);
  return CUDNN_STATUS_BAD_PARAM;
}

// Dropout concerns training only and does not change the place of weights: a question without
// dropout repeats more often and is sent less often.
DnnRnn WithoutDropout(DnnRnn rnn) {
  rnn.dropout = {};
  return rnn;
}

template <typename Answer, typename Command>
cudnnStatus_t Ask(ClientCore& core, const Command& command, Answer& answer) {
  std::vector<std::uint8_t> encoded;
  const cudnnStatus_t status =
      CudnnQuestions::Get().Ask(core, Command::kCallId, wire::Encoded(command), encoded);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  wire::Reader reader(encoded);
  reader(answer);
  return reader.done() ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR;
}

// Describes the place of one matrix or bias; `address` and `descriptor` may be null. Both are empty
// if the matrix or bias does not exist.
cudnnStatus_t Tell(const DnnTensor& shape, std::uint64_t offset, std::size_t weights_bytes,
                   const void* weights, cudnnTensorDescriptor_t descriptor, void** address) {
  const bool exists = shape.rank != 0;
  if (exists && (!DnnIsValid(shape) || DnnPlus(offset, DnnBytes(shape)) > weights_bytes))
    return Refuse("cudnnGetRNNWeightParams", "the weight space is too small for these layers");
  if (descriptor != nullptr) static_cast<DnnTensor&>(*descriptor) = shape;
  if (address != nullptr) {
    const auto base = reinterpret_cast<std::uint64_t>(weights);
    *address = exists ? reinterpret_cast<void*>(base + offset) : nullptr;
  }
  return CUDNN_STATUS_SUCCESS;
}

// One computation: set all parts, then call Send. The first invalid part decides the status.
template <typename Command>
class RecurrentCall {
 public:
  struct Named {
    std::uint64_t* field;
    const void* address;
  };
  struct Space {
    const void* address;
    std::size_t bytes;
  };

  RecurrentCall(cudnnHandle_t handle, const char* entry) : entry_(entry), call_(handle, entry) {
    call_.Stream(command.stream);
  }

  void Shapes(const DnnRnnDescriptors& given, bool is_training) {
    fault_ = DnnReadShapes(given, is_training, command.shapes);
  }
  void Memory(std::initializer_list<Named> all) {
    for (const Named& one : all) call_.Address(*one.field, one.address);
  }
  void Hidden(std::initializer_list<Named> all) {
    if (command.shapes.hidden.rank != 0) Memory(all);
  }
  void Cell(std::initializer_list<Named> all) {
    if (command.shapes.cell.rank != 0) Memory(all);
  }
  void Spaces(Space weights, Space workspace, Space reserve) {
    Memory({{&command.weights, weights.address},
            {&command.workspace, workspace.address},
            {&command.reserve, reserve.address}});
    command.weights_bytes = weights.bytes;
    command.workspace_bytes = workspace.address ? workspace.bytes : 0;
    command.reserve_bytes = reserve.address ? reserve.bytes : 0;
  }

  cudnnStatus_t Send() { return fault_ ? Refuse(entry_, fault_) : call_.SendValid(command); }

  Command command;

 private:
  const char* const entry_;
  CudnnCall call_;
  const char* fault_ = nullptr;
};

}  // namespace
}  // namespace torpor::shim

using namespace torpor;        // NOLINT: the rest only defines the C interface
using namespace torpor::shim;  // NOLINT

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc, cudnnHandle_t handle,
                                        float dropout, void* states, size_t stateSizeInBytes,
                                        unsigned long long seed) {
  if (!CudnnHandleTable::Get().Find(handle)) return CUDNN_STATUS_NOT_INITIALIZED;
  CudnnCall call(handle);
  wire::CudnnDropoutStates command;
  call.Stream(command.stream);
  const cudnnStatus_t status =
      cudnnRestoreDropoutDescriptor(dropoutDesc, handle, dropout, states, stateSizeInBytes, seed);
  if (status != CUDNN_STATUS_SUCCESS || states == nullptr) return status;
  command.dropout = *dropoutDesc;
  return call.SendValid(command);
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                      int32_t pseudoLayer, size_t weightSpaceSize,
                                      const void* weightSpace, int32_t linLayerID,
                                      cudnnTensorDescriptor_t mDesc, void** mAddr,
                                      cudnnTensorDescriptor_t bDesc, void** bAddr) {
  const CudnnHandle* const found = CudnnHandleTable::Get().Find(handle);
  if (!found) return CUDNN_STATUS_NOT_INITIALIZED;
  if (!rnnDesc || !weightSpace) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (!DnnIsValid(*rnnDesc)) return Refuse(__func__, "the layers' descriptor is not set");
  if (pseudoLayer < 0 || pseudoLayer >= DnnPseudoLayers(*rnnDesc))
    return Refuse(__func__, "there is no such pseudo layer");
  if (linLayerID < 0 || linLayerID >= DnnLinearLayers(*rnnDesc))
    return Refuse(__func__, "such cells have no linear layer of that number");
  return WithoutExceptions<CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED>([&] {
    wire::CudnnRnnParameters command;
    command.rnn = WithoutDropout(*rnnDesc);
    command.layer = static_cast<std::uint32_t>(pseudoLayer);
    wire::CudnnRnnParametersResult answer;
    const cudnnStatus_t status = Ask(*found->core, command, answer);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    const auto number = static_cast<std::size_t>(linLayerID);
    if (number >= answer.parameters.size()) return CUDNN_STATUS_INTERNAL_ERROR;
    const wire::CudnnRnnParameter& one = answer.parameters[number];
    const cudnnStatus_t told =
        Tell(one.matrix, one.matrix_offset, weightSpaceSize, weightSpace, mDesc, mAddr);
    if (told != CUDNN_STATUS_SUCCESS) return told;
    return Tell(one.bias, one.bias_offset, weightSpaceSize, weightSpace, bDesc, bAddr);
  });
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                        cudnnForwardMode_t fwdMode, cudnnRNNDataDescriptor_t xDesc,
                                        size_t* workSpaceSize, size_t* reserveSpaceSize) {
  const CudnnHandle* const found = CudnnHandleTable::Get().Find(handle);
  if (!found) return CUDNN_STATUS_NOT_INITIALIZED;
  if (!rnnDesc || !xDesc) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (!DnnIsValid(*rnnDesc) || !DnnIsValid(*xDesc))
    return Refuse(__func__, "a descriptor is not set");
  return WithoutExceptions<CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED>([&] {
    wire::CudnnRnnTempSpaces command;
    command.is_training = fwdMode == CUDNN_FWD_MODE_TRAINING ? 1 : 0;
    command.rnn = command.is_training != 0 ? DnnRnn(*rnnDesc) : WithoutDropout(*rnnDesc);
    // The sizes follow from the longest possible sequence, not from the present sequences.
    command.x = *xDesc;
    std::fill(command.x.lengths.begin(), command.x.lengths.end(), command.x.max_steps);
    wire::CudnnRnnTempSpacesResult answer;
    const cudnnStatus_t status = Ask(*found->core, command, answer);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    DnnPut(workSpaceSize, answer.workspace_bytes);
    DnnPut(reserveSpaceSize, answer.reserve_bytes);
    return CUDNN_STATUS_SUCCESS;
  });
}

// Ignores the lengths in device memory, as cuDNN does: the lengths of the descriptor count.
cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                              cudnnForwardMode_t fwdMode, const int32_t*,
                              cudnnRNNDataDescriptor_t xDesc, const void* x,
                              cudnnRNNDataDescriptor_t yDesc, void* y,
                              cudnnTensorDescriptor_t hDesc, const void* hx, void* hy,
                              cudnnTensorDescriptor_t cDesc, const void* cx, void* cy,
                              size_t weightSpaceSize, const void* weightSpace, size_t workSpaceSize,
                              void* workSpace, size_t reserveSpaceSize, void* reserveSpace) {
  return WithoutExceptions<CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED>([&] {
    RecurrentCall<wire::CudnnRnnForward> call(handle, "cudnnRNNForward");
    if (!x || !y || !weightSpace) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const bool is_training = fwdMode == CUDNN_FWD_MODE_TRAINING;
    call.command.is_training = is_training ? 1 : 0;
    call.Shapes({rnnDesc, xDesc, yDesc, hDesc, hx || hy, cDesc, cx || cy}, is_training);
    call.Memory({{&call.command.x, x}, {&call.command.y, y}});
    call.Hidden({{&call.command.hx, hx}, {&call.command.hy, hy}});
    call.Cell({{&call.command.cx, cx}, {&call.command.cy, cy}});
    call.Spaces({weightSpace, weightSpaceSize}, {workSpace, workSpaceSize},
                {is_training ? reserveSpace : nullptr, reserveSpaceSize});
    return call.Send();
  });
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                      const int32_t*, cudnnRNNDataDescriptor_t yDesc, const void* y,
                                      const void* dy, cudnnRNNDataDescriptor_t xDesc, void* dx,
                                      cudnnTensorDescriptor_t hDesc, const void* hx,
                                      const void* dhy, void* dhx, cudnnTensorDescriptor_t cDesc,
                                      const void* cx, const void* dcy, void* dcx,
                                      size_t weightSpaceSize, const void* weightSpace,
                                      size_t workSpaceSize, void* workSpace,
                                      size_t reserveSpaceSize, void* reserveSpace) {
  return WithoutExceptions<CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED>([&] {
    RecurrentCall<wire::CudnnRnnBackwardData> call(handle, "cudnnRNNBackwardData_v8");
    if (!y || !dy || !dx || !weightSpace) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    call.Shapes({rnnDesc, xDesc, yDesc, hDesc, hx || dhy || dhx, cDesc, cx || dcy || dcx}, true);
    call.Memory({{&call.command.y, y}, {&call.command.dy, dy}, {&call.command.dx, dx}});
    call.Hidden({{&call.command.hx, hx}, {&call.command.dhy, dhy}, {&call.command.dhx, dhx}});
    call.Cell({{&call.command.cx, cx}, {&call.command.dcy, dcy}, {&call.command.dcx, dcx}});
    call.Spaces({weightSpace, weightSpaceSize}, {workSpace, workSpaceSize},
                {reserveSpace, reserveSpaceSize});
    return call.Send();
  });
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnWgradMode_t addGrad, const int32_t*,
    cudnnRNNDataDescriptor_t xDesc, const void* x, cudnnTensorDescriptor_t hDesc, const void* hx,
    cudnnRNNDataDescriptor_t yDesc, const void* y, size_t weightSpaceSize, void* dweightSpace,
    size_t workSpaceSize, void* workSpace, size_t reserveSpaceSize, void* reserveSpace) {
  return WithoutExceptions<CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED>([&] {
    RecurrentCall<wire::CudnnRnnBackwardWeights> call(handle, "cudnnRNNBackwardWeights_v8");
    if (!x || !y || !dweightSpace) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    call.command.adds = addGrad == CUDNN_WGRAD_MODE_ADD ? 1 : 0;
    call.Shapes({rnnDesc, xDesc, yDesc, hDesc, hx != nullptr, nullptr, false}, true);
    call.Memory({{&call.command.x, x}, {&call.command.y, y}});
    call.Hidden({{&call.command.hx, hx}});
    call.Spaces({dweightSpace, weightSpaceSize}, {workSpace, workSpaceSize},
                {reserveSpace, reserveSpaceSize});
    return call.Send();
  });
}
