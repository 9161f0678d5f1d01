#include "server/executor/runtime/symbol_calls.h"

#include "server/executor/gpu/call_status.h"

namespace torpor::executor {

using cuda_api::Access;
using cuda_api::CallStatus;

CallStatus SymbolCalls::SymbolPublish(const wire::SymbolPublish& command) {
  const LoadedVariable* variable = nullptr;
  CallStatus used = parts_.ownership.Variable(command.module, command.variable, variable);
  if (!used.ok()) return used;
  return ToCallStatus(parts_.modules.Publish(command.module, command.variable, command.address),
                      "address of a variable");
}

CallStatus SymbolCalls::SymbolAddress(const wire::SymbolAddress& command,
                                      wire::SymbolAddressResult& result) {
  const LoadedVariable* variable = nullptr;
  CallStatus used = parts_.ownership.Variable(command.module, command.variable, variable);
  if (!used.ok()) return used;
  result.address = variable->address;
  result.bytes = variable->bytes;
  // A program that knows the address may write there.
  parts_.image.MarkDirty();
  return {};
}

CallStatus SymbolCalls::MemcpyToSymbol(const wire::MemcpyToSymbol& command) {
  return parts_.marks.Write(Write(command), command.stream, command.slot, command.value);
}

CallStatus SymbolCalls::Write(const wire::MemcpyToSymbol& command) {
  CUdeviceptr target = 0;
  CallStatus used = parts_.ownership.VariableBytes(command.module, command.variable,
                                                   command.variable_offset, command.bytes, target);
  if (!used.ok()) return used;
  const bool from_device = command.device_source != 0;
  const CUdeviceptr device_source =
      from_device ? parts_.memory.Device(command.device_source, command.bytes, Access::kRead) : 0;
  const std::uint8_t* source = from_device ? nullptr
                                           : parts_.memory.Payload(command.payload, command.offset,
                                                                   command.bytes, command.data);
  if (device_source == 0 && source == nullptr) return NotOwned("cudaMemcpyToSymbol");
  parts_.image.MarkDirty();
  const CudaDriver& driver = parts_.device.driver();
  CUstream stream = nullptr;
  CUresult result = parts_.streams.Use(command.stream, stream);
  if (result == CUDA_SUCCESS) {
    result = from_device ? driver.MemcpyDtoDAsync(target, device_source, command.bytes, stream)
                         : driver.MemcpyHtoDAsync(target, source, command.bytes, stream);
  }
  return ToCallStatus(driver, result, "cudaMemcpyToSymbol");
}

CallStatus SymbolCalls::MemcpyFromSymbol(const wire::MemcpyFromSymbol& command,
                                         wire::MemcpyFromSymbolResult& result) {
  CUdeviceptr source = 0;
  CallStatus used = parts_.ownership.VariableBytes(command.module, command.variable,
                                                   command.variable_offset, command.bytes, source);
  if (!used.ok()) return used;
  return parts_.downloads.Copy(source, command.stream, command.bytes, command.window_offset,
                               result.data);
}

}  // namespace torpor::executor
