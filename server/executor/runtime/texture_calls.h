#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "proto/cuda_api/cudart_dispatch.h"
#include "server/executor/gpu/device.h"
#include "server/executor/runtime/command_memory.h"
#include "server/executor/runtime/session_arrays.h"
#include "server/executor/runtime/session_textures.h"
#include "server/executor/runtime/stream_set.h"
#include "server/executor/session_memory/session_memory.h"

namespace torpor::executor {

// Carries out the commands about texture and surface objects of a session. Not thread-safe; call
// with the device current.
class TextureCalls final : public cuda_api::CudartTextureHandler {
 public:
  // Collaborators, which must outlive the calls.
  struct Parts {
    const Device& device;
    SessionTextures& textures;
    const SessionArrays& arrays;
    const CommandMemory& memory;
    const SessionMemory& session_memory;
    StreamSet& streams;
  };
  explicit TextureCalls(const Parts& parts) : parts_(parts) {}

  cuda_api::CallStatus TextureCreate(const wire::TextureCreate& command) override;
  cuda_api::CallStatus SurfaceCreate(const wire::SurfaceCreate& command) override;
  cuda_api::CallStatus ImageObjectDestroy(const wire::ImageObjectDestroy& command) override;
  cuda_api::CallStatus ImageObjectPublish(const wire::ImageObjectPublish& command) override;
  cuda_api::CallStatus ImageObjectValue(const wire::ImageObjectValue& command,
                                        wire::ImageObjectValueResult& result) override;

  // Makes textures again whose memory has moved on this GPU; see SessionTextures::Rebind. No work
  // of the session runs.
  absl::Status Rebind();

 private:
  // Describe the memory or array behind a texture or surface; false if not the session's.
  bool ArrayResource(std::uint64_t id, std::uint32_t level, CUDA_RESOURCE_DESC& resource) const;
  bool MemoryResource(const wire::TextureCreate& command, CUDA_RESOURCE_DESC& resource,
                      SessionTextures::Memory& memory) const;
  bool ResourceOf(const wire::TextureCreate& command, CUDA_RESOURCE_DESC& resource,
                  SessionTextures::Memory& memory) const;

  const Parts parts_;
};

}  // namespace torpor::executor
