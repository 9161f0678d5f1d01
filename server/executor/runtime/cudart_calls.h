#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "proto/cuda_api/cudart_dispatch.h"
#include "server/executor/gpu/device.h"
#include "server/executor/module/module_store.h"
#include "server/executor/module/session_modules.h"
#include "server/executor/runtime/event_set.h"
#include "server/executor/runtime/graph_set.h"
#include "server/executor/runtime/session_arrays.h"
#include "server/executor/runtime/session_textures.h"
#include "server/executor/runtime/shared_event.h"
#include "server/executor/runtime/stream_set.h"
#include "server/executor/session_memory/session_memory.h"

namespace torpor::executor {

// Carries out the CUDA runtime calls of one session. Every id is looked up among the session's own
// objects and every range among its own memory before the driver hears of it. Of one thread at a
// time, on which the device is current.
// Sources: cudart_calls_{streams,modules,memory,arrays,graphs}.cc.
class CudartCalls final : public cuda_api::CudartHandler {
 public:
  // All outlive this. `run` carries out a command of a graph.
  CudartCalls(const Device& device, ModuleLibrary& library, SessionMemory& memory,
              GraphSet::RunCommand run);
  // The session's work is done.
  ~CudartCalls() override = default;

  // Under which lease the calls come from now on.
  void SetLease(LeaseId lease) { lease_ = lease; }
  // All of the session's work is done.
  void ForgetWork() { windows_in_use_.clear(); }

  StreamSet& streams() { return streams_; }
  EventSet& events() { return events_; }
  SessionModules& modules() { return modules_; }
  SessionArrays& arrays() { return arrays_; }
  // Textures of memory that is elsewhere on this GPU now are made again.
  absl::Status RebindTextures();
  bool has_memory_textures() const { return textures_.reads_memory(); }

  cuda_api::CallStatus StreamCreate(const wire::StreamCreate& command) override;
  cuda_api::CallStatus StreamDestroy(const wire::StreamDestroy& command) override;
  cuda_api::CallStatus StreamWaitEvent(const wire::StreamWaitEvent& command) override;
  cuda_api::CallStatus StreamMark(const wire::StreamMark& command) override;
  cuda_api::CallStatus StreamFence(const wire::StreamFence& command) override;
  cuda_api::CallStatus StreamWaitMark(const wire::StreamWaitMark& command) override;
  cuda_api::CallStatus StreamSynchronize(const wire::StreamSynchronize& command,
                                         wire::StreamSynchronizeResult& result) override;
  cuda_api::CallStatus EventCreate(const wire::EventCreate& command) override;
  cuda_api::CallStatus EventDestroy(const wire::EventDestroy& command) override;
  cuda_api::CallStatus EventRecord(const wire::EventRecord& command) override;
  cuda_api::CallStatus EventImport(const wire::EventImport& command) override;
  cuda_api::CallStatus EventSynchronize(const wire::EventSynchronize& command,
                                        wire::EventSynchronizeResult& result) override;
  cuda_api::CallStatus SharedEventRecord(const wire::SharedEventRecord& command,
                                         wire::SharedEventRecordResult& result) override;
  cuda_api::CallStatus SharedEventWait(const wire::SharedEventWait& command,
                                       wire::SharedEventWaitResult& result) override;
  cuda_api::CallStatus SharedEventQuery(const wire::SharedEventQuery& command,
                                        wire::SharedEventQueryResult& result) override;
  cuda_api::CallStatus EventElapsedTime(const wire::EventElapsedTime& command,
                                        wire::EventElapsedTimeResult& result) override;
  cuda_api::CallStatus DeviceSynchronize(const wire::DeviceSynchronize& command,
                                         wire::DeviceSynchronizeResult& result) override;
  cuda_api::CallStatus DeviceSetLimit(const wire::DeviceSetLimit& command) override;
  cuda_api::CallStatus DeviceGetLimit(const wire::DeviceGetLimit& command,
                                      wire::DeviceGetLimitResult& result) override;

  cuda_api::CallStatus ModuleUse(const wire::ModuleUse& command) override;
  cuda_api::CallStatus ModuleLoad(const wire::ModuleLoad& command,
                                  wire::ModuleLoadResult& result) override;
  cuda_api::CallStatus ModuleUpload(const wire::ModuleUpload& command,
                                    wire::ModuleUploadResult& result) override;
  cuda_api::CallStatus ModuleUnload(const wire::ModuleUnload& command) override;
  cuda_api::CallStatus ModuleBindGlobals(const wire::ModuleBindGlobals& command) override;
  cuda_api::CallStatus KernelCreate(const wire::KernelCreate& command) override;
  cuda_api::CallStatus FuncSetAttribute(const wire::FuncSetAttribute& command) override;
  cuda_api::CallStatus FuncGetAttributes(const wire::FuncGetAttributes& command,
                                         wire::FuncGetAttributesResult& result) override;
  cuda_api::CallStatus OccupancyMaxActiveBlocks(
      const wire::OccupancyMaxActiveBlocks& command,
      wire::OccupancyMaxActiveBlocksResult& result) override;
  cuda_api::CallStatus LaunchKernel(const wire::LaunchKernel& command) override;
  cuda_api::CallStatus SymbolPublish(const wire::SymbolPublish& command) override;
  cuda_api::CallStatus SymbolAddress(const wire::SymbolAddress& command,
                                     wire::SymbolAddressResult& result) override;

  cuda_api::CallStatus MemcpyHtoD(const wire::MemcpyHtoD& command) override;
  cuda_api::CallStatus MemcpyDtoHArena(const wire::MemcpyDtoHArena& command) override;
  cuda_api::CallStatus MemcpyDtoD(const wire::MemcpyDtoD& command) override;
  cuda_api::CallStatus Memcpy2D(const wire::Memcpy2D& command) override;
  cuda_api::CallStatus Memset(const wire::Memset& command) override;
  cuda_api::CallStatus Memset2D(const wire::Memset2D& command) override;
  cuda_api::CallStatus MemcpyToSymbol(const wire::MemcpyToSymbol& command) override;
  cuda_api::CallStatus MemcpyDtoH(const wire::MemcpyDtoH& command,
                                  wire::MemcpyDtoHResult& result) override;
  cuda_api::CallStatus MemcpyFromSymbol(const wire::MemcpyFromSymbol& command,
                                        wire::MemcpyFromSymbolResult& result) override;

  cuda_api::CallStatus ArrayCreate(const wire::ArrayCreate& command) override;
  cuda_api::CallStatus ArrayDestroy(const wire::ArrayDestroy& command) override;
  cuda_api::CallStatus ArrayCheck(const wire::ArrayCheck& command,
                                  wire::ArrayCheckResult& result) override;
  cuda_api::CallStatus Memcpy3D(const wire::Memcpy3D& command) override;
  cuda_api::CallStatus TextureCreate(const wire::TextureCreate& command) override;
  cuda_api::CallStatus SurfaceCreate(const wire::SurfaceCreate& command) override;
  cuda_api::CallStatus ImageObjectDestroy(const wire::ImageObjectDestroy& command) override;
  cuda_api::CallStatus ImageObjectPublish(const wire::ImageObjectPublish& command) override;
  cuda_api::CallStatus ImageObjectValue(const wire::ImageObjectValue& command,
                                        wire::ImageObjectValueResult& result) override;
  cuda_api::CallStatus GraphCreate(const wire::GraphCreate& command) override;
  cuda_api::CallStatus GraphAddNodes(const wire::GraphAddNodes& command) override;
  cuda_api::CallStatus GraphSetNode(const wire::GraphSetNode& command) override;
  cuda_api::CallStatus GraphDestroy(const wire::GraphDestroy& command) override;
  cuda_api::CallStatus GraphLaunch(const wire::GraphLaunch& command) override;

 private:
  const CudaDriver& driver() const { return device_.driver(); }
  cuda_api::CallStatus Outcome(CUresult result, std::string_view what) const;
  // Until all earlier work of the stream is done.
  cuda_api::CallStatus WaitFor(std::uint64_t stream_id);
  // Writes the completion mark in the stream's order, however the call itself went: the client
  // waits for it.
  cuda_api::CallStatus Marked(cuda_api::CallStatus status, std::uint64_t stream, std::uint32_t slot,
                              std::uint64_t value);

  // The window of a session of the function, kept until the work in hand is done; null if there is
  // no such session.
  SessionWindow* UseWindowOf(SessionId session);
  // What `use` makes of the event, shared by sessions, that a command is about.
  template <typename Command, typename Use>
  CUresult OnSharedEvent(const Command& command, const Use& use);
  // `work` of that event, on the stream that the command names.
  template <typename Command>
  CUresult EnqueueSharedEvent(const Command& command,
                              CUresult (SharedEvent::*work)(CUstream) const);

  // Where the client's memory [address, address + bytes), which the command uses, is on this GPU:
  // device or pinned memory, or in a variable that has another address here. 0 if it is not the
  // session's.
  CUdeviceptr DeviceMemory(std::uint64_t address, Bytes bytes, cuda_api::Access access) const;
  // Where a payload's bytes are; null if they are not all there.
  const std::uint8_t* PayloadBytes(wire::Payload kind, std::uint64_t offset, Bytes bytes,
                                   std::span<const std::uint8_t> data) const;
  cuda_api::CallStatus Upload(const wire::MemcpyHtoD& command);
  cuda_api::CallStatus WriteSymbol(const wire::MemcpyToSymbol& command);
  // Copies checked device memory to the window or into `data`, and waits.
  cuda_api::CallStatus Download(CUdeviceptr source, std::uint64_t stream, Bytes bytes,
                                std::uint64_t window_offset, std::vector<std::uint8_t>& data);
  // The session has the module for itself from now on; its work is done.
  cuda_api::CallStatus TakeOwnModule(std::uint64_t module, std::string_view what);
  // A variable, of a module that is the session's own from now on.
  cuda_api::CallStatus UseVariable(std::uint64_t module, std::string_view name,
                                   const LoadedVariable*& variable);
  // The address of [offset, offset + bytes) of it, which the command uses.
  cuda_api::CallStatus UseVariableBytes(std::uint64_t module, std::string_view name,
                                        std::uint64_t offset, Bytes bytes, CUdeviceptr& address);
  // The packed parameters of a kernel with the addresses of variables, the values of textures and
  // surfaces, and the addresses of memory where the GPU knows others, as they are on this GPU.
  std::uint8_t* TranslatedParameters(const std::vector<wire::KernelParameter>& layout,
                                     std::span<const std::uint8_t> parameters);
  std::uint64_t Translated(std::uint64_t word) const;
  // Whether variables, textures or surfaces are known by other numbers than those of this GPU.
  bool has_moved_objects() const { return modules_.has_moved() || textures_.has_moved(); }
  // Says what a kernel uses.
  void UseParameters(const SessionKernel& kernel, std::span<const std::uint8_t> parameters) const;
  // Waits for what a swap-in still copies to the arrays and variables of the session.
  cuda_api::CallStatus AwaitArrival(std::string_view what) const;
  // One side of a two-dimensional copy; false if it is not the session's.
  bool Side2D(wire::MemorySide side, std::uint64_t address, Bytes extent, cuda_api::Access access,
              CUmemorytype& type, CUdeviceptr& device, void*& host) const;

  // One side of a three-dimensional copy, for the driver; false if it is not the session's.
  bool Side3D(const wire::Memcpy3D& copy, bool is_target, CUDA_MEMCPY3D& driver_copy);
  // What a texture or surface is of; false if it is not the session's.
  bool ArrayResource(std::uint64_t id, std::uint32_t level, CUDA_RESOURCE_DESC& resource) const;
  bool MemoryResource(const wire::TextureCreate& command, CUDA_RESOURCE_DESC& resource,
                      SessionTextures::Memory& memory) const;
  bool ResourceOf(const wire::TextureCreate& command, CUDA_RESOURCE_DESC& resource,
                  SessionTextures::Memory& memory) const;

  const Device& device_;
  ModuleLibrary& library_;
  SessionMemory& memory_;
  LeaseId lease_;
  // Of other sessions too: what waits for their slots, or writes them, may outlive these.
  std::set<std::shared_ptr<SessionWindow>> windows_in_use_;
  // The modules are unloaded last: kernels may still wait in destroyed streams.
  SessionModules modules_;
  SessionArrays arrays_;
  SessionTextures textures_;
  EventSet events_;
  StreamSet streams_;
  GraphSet graphs_;
  ModuleUploadBuffer upload_;
  std::vector<void*> parameters_;                  // scratch of LaunchKernel
  std::vector<std::uint64_t> translated_;          // the same
  std::map<std::uint32_t, std::uint64_t> limits_;  // that this session has set
};

}  // namespace torpor::executor
