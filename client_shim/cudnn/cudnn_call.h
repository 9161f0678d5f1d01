#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "client_shim/c_entry.h"
#include "client_shim/core/call_tracer.h"
#include "client_shim/cudnn/handle_table.h"
#include "client_shim/cudnn/questions.h"
#include "nvidia/cudnn/descriptors.h"
#include "proto/wire/codec.h"

namespace torpor::shim {

// One call of a cuDNN function from a generated entry: the entry fills in the command's fields one
// after another, then calls Send or AskSize. The first field that cannot be sent decides the
// status.
class CudnnCall {
 public:
  // The call fails with CUDNN_STATUS_NOT_INITIALIZED if the handle is unknown.
  explicit CudnnCall(cudnnHandle_t handle, const char* entry = __builtin_FUNCTION())
      : traced_(entry),
        handle_(CudnnHandleTable::Get().Find(handle)),
        status_(handle_ ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_INITIALIZED) {}

  // Each of the following fills in a field of one kind.
  // The session's stream for the calling thread.
  void Stream(std::uint64_t& field);

  // The values of a descriptor; null fails the call.
  template <typename Value, typename Described>
  void Descriptor(Value& field, const Described* descriptor) {
    if (!descriptor) return Fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    field = *descriptor;
  }

  template <typename Field, typename T>
  void Value(Field& field, T value) const {
    field = static_cast<Field>(value);
  }

  void Address(std::uint64_t& field, const void* pointer) const {
    field = reinterpret_cast<std::uint64_t>(pointer);
  }

  // A number of `bytes` bytes, at most 8, in host memory; null fails the call.
  void Scalar(std::array<std::uint8_t, 8>& field, const void* scalar, std::uint64_t bytes) {
    if (!scalar) return Fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    std::memcpy(field.data(), scalar, bytes);
  }

  // Enqueues the command if all fields are valid. Does not wait for the result.
  template <typename Command>
  cudnnStatus_t Send(Command& command) {
    return IsSendable(command) ? SendValid(command) : status_;
  }

  // As Send, for fields that are known to be valid.
  template <typename Command>
  cudnnStatus_t SendValid(const Command& command) {
    if (status_ != CUDNN_STATUS_SUCCESS) return status_;
    return WithoutExceptions<CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED>([&] {
      const std::vector<std::uint8_t> fields = wire::Encoded(command);
      return Enqueue(Command::kCallId, command.stream, fields);
    });
  }

  // Asks the executor's library, or CudnnQuestions' memory, for a size in bytes. The answer does
  // not depend on the stream, which is left out of the question.
  template <typename Answer, typename Command>
  cudnnStatus_t AskSize(Command& command, std::size_t* size) {
    if (!size) Fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    if (!IsSendable(command)) return status_;
    command.stream = 0;
    return WithoutExceptions<CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED>([&] {
      std::vector<std::uint8_t> result;
      const cudnnStatus_t status = CudnnQuestions::Get().Ask(*handle_->core, Command::kCallId,
                                                             wire::Encoded(command), result);
      if (status != CUDNN_STATUS_SUCCESS) return status;
      Answer answer;
      wire::Reader reader(result);
      reader(answer);
      if (!reader.done()) return CUDNN_STATUS_INTERNAL_ERROR;
      *size = answer.bytes;
      return CUDNN_STATUS_SUCCESS;
    });
  }

 private:
  void Fail(cudnnStatus_t status) {
    if (status_ == CUDNN_STATUS_SUCCESS) status_ = status;
  }

  template <typename Command>
  bool IsSendable(const Command& command) {
    if (status_ == CUDNN_STATUS_SUCCESS && !FieldsAreValid(command))
      status_ = CUDNN_STATUS_BAD_PARAM;
    return status_ == CUDNN_STATUS_SUCCESS;
  }

  cudnnStatus_t Enqueue(std::uint32_t call_id, std::uint64_t stream,
                        std::span<const std::uint8_t> fields);

  const TracedCall traced_;
  CudnnHandle* const handle_;
  cudnnStatus_t status_;
};

}  // namespace torpor::shim
