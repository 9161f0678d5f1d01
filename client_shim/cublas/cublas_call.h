#pragma once

#include <cublas_api.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "client_shim/core/call_tracer.h"
#include "client_shim/cublas/captured_handle.h"
#include "client_shim/cublas/handle_table.h"
#include "client_shim/cublas/status.h"
#include "proto/cuda_api/cublas_scalar.h"
#include "proto/wire/codec.h"

namespace torpor::shim {

// One call of a cuBLAS function from a generated entry: the entry fills in the command's fields one
// after another, then calls Send or Ask. The first field that cannot be sent decides the status.
class CublasCall {
 public:
  // The call fails with CUBLAS_STATUS_NOT_INITIALIZED if the handle is unknown.
  explicit CublasCall(cublasHandle_t handle, const char* entry = __builtin_FUNCTION())
      : traced_(entry),
        handle_(CublasHandleTable::Get().Find(handle)),
        status_(handle_ ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED) {}

  // Whether the handle's pointer mode is host: scalars are read from and written to host memory.
  bool result_goes_to_host() const {
    return handle_ && handle_->pointer_mode == CUBLAS_POINTER_MODE_HOST;
  }

  void Handle(std::uint64_t& field) const { field = handle_ ? handle_->id() : 0; }

  // The `_64` entries pass sizes that may exceed the executor's 32-bit functions.
  template <typename Field, typename T>
  requires(std::integral<T> || std::is_enum_v<T>) void Value(Field& field, T value) {
    const auto wide = static_cast<std::int64_t>(value);
    if (wide < std::numeric_limits<Field>::min() || wide > std::numeric_limits<Field>::max())
      return Fail(CUBLAS_STATUS_NOT_SUPPORTED);
    field = static_cast<Field>(wide);
  }

  // Fails the call and says so on stdout, as cuBLAS does, if the parameter of BLAS's `routine` is
  // illegal. `number` counts from 1, without the handle.
  void RefuseIf(bool is_illegal, const char* routine, int number) {
    if (!is_illegal || status_ != CUBLAS_STATUS_SUCCESS) return;
    std::printf(" ** On entry to %-6s parameter number %d had an illegal value\n", routine, number);
    Fail(CUBLAS_STATUS_INVALID_VALUE);
  }

  void Address(std::uint64_t& field, const void* pointer) const {
    field = reinterpret_cast<std::uint64_t>(pointer);
  }

  // A scalar of `bytes` bytes: its value in host memory, or its address in device memory, according
  // to the pointer mode. Null fails the call.
  template <std::size_t kBytes>
  void Scalar(wire::CublasNumbers<kBytes>& field, const void* scalar, std::uint64_t bytes) {
    if (!scalar) return Fail(CUBLAS_STATUS_INVALID_VALUE);
    if (result_goes_to_host())
      std::memcpy(field.value.data(), scalar, bytes);
    else
      field.address = reinterpret_cast<std::uint64_t>(scalar);
  }

  // A `_64` index is wider than the index that the executor's function writes.
  template <typename Element, typename T>
  void DeviceResult(std::uint64_t& field, T* result) {
    if constexpr (sizeof(T) != sizeof(Element)) Fail(CUBLAS_STATUS_NOT_SUPPORTED);
    field = reinterpret_cast<std::uint64_t>(result);
  }

  // Sets *info to 0, "no wrong parameter": a wrong parameter fails the call itself.
  void Info(int* info) {
    if (!info) return Fail(CUBLAS_STATUS_INVALID_VALUE);
    *info = 0;
  }

  // Enqueues the command, or captures it if the stream captures. Does not wait for the result.
  template <typename Command>
  cublasStatus_t Send(Command& command) {
    if (!IsSendable(command)) return status_;
    return WithFields([&](std::vector<std::uint8_t>& fields) {
      std::shared_ptr<const CapturedHandle> captured;
      if (const cublasStatus_t status = FindCaptured(captured)) return status;
      if (captured) command.handle = captured->id();
      wire::Writer{fields}(command);
      return captured ? Capture(Command::kCallId, fields, std::move(captured))
                      : Enqueue(Command::kCallId, fields);
    });
  }

  // Calls the command and waits for its result in host memory, an `Element` in `value` of `answer`.
  template <typename Element, typename Command, typename Answer, typename T>
  cublasStatus_t Ask(Command& command, Answer& answer, const std::array<std::uint8_t, 16>& value,
                     T* result) {
    if (!result) Fail(CUBLAS_STATUS_INVALID_VALUE);
    Element element{};
    const cublasStatus_t status = AskBytes(command, answer, value, &element, sizeof element);
    if (status == CUBLAS_STATUS_SUCCESS) *result = element;
    return status;
  }

  // As Ask, for a result whose type is an argument of the call.
  template <typename Command, typename Answer>
  cublasStatus_t AskBytes(Command& command, Answer& answer,
                          const std::array<std::uint8_t, 16>& value, void* result,
                          std::uint64_t bytes) {
    if (!result) Fail(CUBLAS_STATUS_INVALID_VALUE);
    if (!IsSendable(command)) return status_;
    return WithFields([&](std::vector<std::uint8_t>& fields) {
      wire::Writer{fields}(command);
      std::vector<std::uint8_t> reply;
      const cublasStatus_t status = Call(Command::kCallId, fields, reply);
      if (status != CUBLAS_STATUS_SUCCESS) return status;
      wire::Reader reader(reply);
      reader(answer);
      if (!reader.done()) return CUBLAS_STATUS_INTERNAL_ERROR;
      std::memcpy(result, value.data(), bytes);
      return CUBLAS_STATUS_SUCCESS;
    });
  }

 private:
  void Fail(cublasStatus_t status) {
    if (status_ == CUBLAS_STATUS_SUCCESS) status_ = status;
  }

  template <typename Command>
  bool IsSendable(const Command& command) {
    if (status_ == CUBLAS_STATUS_SUCCESS && !FieldsAreValid(command))
      status_ = CUBLAS_STATUS_INVALID_VALUE;
    return status_ == CUBLAS_STATUS_SUCCESS;
  }

  // Runs `body` with a buffer for the command's fields.
  template <typename Body>
  static cublasStatus_t WithFields(Body body) noexcept {
    return Guarded([&] {
      std::vector<std::uint8_t> fields;
      fields.reserve(kExpectedBytes);
      return body(fields);
    });
  }

  // Finds the handle for a call on a capturing stream, in place of the program's handle; null if
  // the stream does not capture.
  cublasStatus_t FindCaptured(std::shared_ptr<const CapturedHandle>& captured);
  cublasStatus_t Capture(std::uint32_t call_id, std::span<const std::uint8_t> fields,
                         std::shared_ptr<const CapturedHandle> captured);
  cublasStatus_t Enqueue(std::uint32_t call_id, std::span<const std::uint8_t> fields);
  cublasStatus_t Call(std::uint32_t call_id, std::span<const std::uint8_t> fields,
                      std::vector<std::uint8_t>& result);

  static constexpr std::size_t kExpectedBytes = 320;  // of the longest, GemmStridedBatchedEx

  const TracedCall traced_;
  CublasHandle* const handle_;
  cublasStatus_t status_;
};

}  // namespace torpor::shim
