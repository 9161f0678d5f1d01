#include "client_shim/cudart/graph_api/work_commands.h"

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/copy/linear_volume.h"
#include "client_shim/cudart/copy/memcpy.h"
#include "client_shim/cudart/launch/launch.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/module/modules.h"
#include "client_shim/cudart/stream/events.h"

namespace torpor::shim {
namespace {

// Chooses the runner of a copy from the present route. The copy was checked when made; memory freed
// since counts as pageable.
Runner RunnerOfCopy(const CopyWork& copy) {
  LinearVolume volume;
  CopyRoute route;
  if (ReadCopy(copy.parameters, volume, route) != cudaSuccess) return Runner::kExecutor;
  const bool to_device = route.to == Side::kDevice;
  const bool from_device = route.from == Side::kDevice;
  if (!to_device && !from_device) return Runner::kClientAwaiting;
  if (route.to != Side::kPageable && route.from != Side::kPageable) return Runner::kExecutor;
  const bool is_linear = volume.height == 1 && volume.depth == 1;
  return to_device && is_linear ? Runner::kClientAtOnce : Runner::kClientAwaiting;
}

// Encodes executor work as commands without a stream.
class Encoder {
 public:
  explicit Encoder(std::vector<wire::GraphCommand>& commands) : commands_(commands) {}

  cudaError_t operator()(const KernelWork& kernel) {
    // After a reset, or on another device, the kernel may need loading again.
    TORPOR_TRY(PrepareKernel(*kernel.kernel));
    const Launch launch{kernel.grid, kernel.block, kernel.shared_bytes, nullptr, kernel.flags};
    return Add(LaunchCommand(*kernel.kernel, launch, kernel.parameters));
  }
  cudaError_t operator()(const CopyWork& copy) {
    LinearVolume volume;
    CopyRoute route;
    TORPOR_TRY(ReadCopy(copy.parameters, volume, route));
    for (std::uint64_t slice = 0; slice < volume.depth; ++slice) {
      const bool is_linear = volume.height == 1 ||
                             (volume.to_pitch == volume.width && volume.from_pitch == volume.width);
      TORPOR_TRY(is_linear ? AddLinear(volume, route) : AddRows(volume, route));
      volume.to += volume.to_slice;
      volume.from += volume.from_slice;
    }
    return cudaSuccess;
  }
  cudaError_t operator()(const FillWork& fill) {
    const cudaMemsetParams& parameters = fill.parameters;
    const std::uint64_t row = parameters.width * parameters.elementSize;
    TORPOR_TRY(
        RefuseManagedVariables(parameters.dst, (parameters.height - 1) * parameters.pitch + row));
    const std::uint64_t to = Address(parameters.dst);
    const std::uint32_t element = parameters.elementSize;
    if (parameters.height == 1)
      return Add(wire::Memset{to, 0, parameters.value, element, parameters.width});
    return Add(wire::Memset2D{to, parameters.pitch, parameters.value, element, parameters.width,
                              parameters.height, 0});
  }
  cudaError_t operator()(const LibraryWork& call) {
    commands_.push_back({call.call_id, call.fields});
    return cudaSuccess;
  }
  // Work without commands: nodes that only order others, and client work.
  template <typename Other>
  cudaError_t operator()(const Other&) {
    return cudaSuccess;
  }

 private:
  template <typename Message>
  cudaError_t Add(const Message& message) {
    commands_.push_back({Message::kCallId, wire::Encoded(message)});
    return cudaSuccess;
  }
  // Adds a copy of consecutive bytes between device memory and the arena.
  cudaError_t AddLinear(const LinearVolume& volume, const CopyRoute& route) {
    const std::uint64_t bytes = volume.width * volume.height;
    if (route.from == Side::kDevice && route.to == Side::kDevice)
      return Add(wire::MemcpyDtoD{Address(volume.to), Address(volume.from), 0, bytes});
    if (route.from == Side::kDevice)
      return Add(wire::MemcpyDtoHArena{Address(volume.from), 0, bytes, ArenaOffset(volume.to)});
    wire::MemcpyHtoD command;
    command.dst = Address(volume.to);
    command.bytes = bytes;
    command.payload = wire::Payload::kArena;
    command.offset = ArenaOffset(volume.from);
    return Add(command);
  }
  // Adds a copy of rows; a volume needs one command for each slice.
  cudaError_t AddRows(const LinearVolume& volume, const CopyRoute& route) {
    return Add(wire::Memcpy2D{Address(volume.to), volume.to_pitch, Address(volume.from),
                              volume.from_pitch, volume.width, volume.height, 0,
                              MemorySideOf(route.to), MemorySideOf(route.from)});
  }

  std::vector<wire::GraphCommand>& commands_;
};

// Runs client work in the order of a stream.
struct ClientRunner {
  const ClientStreamPtr& stream;

  cudaError_t operator()(const HostWork& host) const {
    host.parameters.fn(host.parameters.userData);
    return cudaSuccess;
  }
  cudaError_t operator()(const CopyWork& copy) const {
    LinearVolume volume;
    CopyRoute route;
    TORPOR_TRY(ReadCopy(copy.parameters, volume, route));
    const Rows rows{volume.to_pitch, volume.from_pitch, volume.width, volume.height};
    for (std::uint64_t slice = 0; slice < volume.depth; ++slice) {
      TORPOR_TRY(CopyRowsOn(stream, volume.to, volume.from, rows, route));
      volume.to += volume.to_slice;
      volume.from += volume.from_slice;
    }
    return cudaSuccess;
  }
  cudaError_t operator()(const EventRecordWork& record) const {
    return RecordEvent(record.event, *stream);
  }
  cudaError_t operator()(const EventWaitWork& wait) const {
    return AwaitEvent(wait.event, *stream);
  }
  template <typename Other>
  cudaError_t operator()(const Other&) const {
    return cudaSuccess;
  }
};

}  // namespace

Runner RunnerOf(const NodeWork& work) {
  if (const auto* copy = std::get_if<CopyWork>(&work)) return RunnerOfCopy(*copy);
  if (std::holds_alternative<HostWork>(work)) return Runner::kClientAwaiting;
  const bool is_event =
      std::holds_alternative<EventRecordWork>(work) || std::holds_alternative<EventWaitWork>(work);
  return is_event ? Runner::kClientAtOnce : Runner::kExecutor;
}

cudaError_t EncodeWork(const NodeWork& work, std::vector<wire::GraphCommand>& commands) {
  commands.clear();
  return std::visit(Encoder(commands), work);
}

cudaError_t RunInClient(const NodeWork& work, const ClientStreamPtr& stream) {
  return std::visit(ClientRunner{stream}, work);
}

}  // namespace torpor::shim
