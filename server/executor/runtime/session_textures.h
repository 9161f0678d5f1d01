#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// The texture and surface objects of one session on this GPU. The value by which the program knows
// an object is the driver's on the GPU where it was made. Where it is another here, kernel
// parameters are translated if no plain number can be mistaken for it; else the object is made
// until it gets that value. Of one thread at a time.
class SessionTextures {
 public:
  explicit SessionTextures(const Device& device) : device_(device) {}
  ~SessionTextures();
  SessionTextures(const SessionTextures&) = delete;
  SessionTextures& operator=(const SessionTextures&) = delete;

  // The client's memory that a texture reads.
  struct Memory {
    std::uint64_t address = 0;
    Bytes bytes = 0;  // 0: it reads an array
  };

  // Makes the object. That it could not be made is told by ValueOf: a program may have freed the
  // memory under an object that it does not use any more.
  void AddTexture(std::uint64_t id, const CUDA_RESOURCE_DESC& resource,
                  const CUDA_TEXTURE_DESC& texture, const CUDA_RESOURCE_VIEW_DESC* view,
                  const Memory& memory);
  void AddSurface(std::uint64_t id, const CUDA_RESOURCE_DESC& resource);
  // One that has no resource here.
  void AddBroken(std::uint64_t id, absl::Status why);
  // Makes those textures again, with the values that they have, whose memory is not where it was
  // when they were made. `resolve` gives where it is, 0 if it is gone: then the texture stays as it
  // is. FailedPrecondition if the driver gives one another value; it is broken then.
  absl::Status Rebind(const std::function<CUdeviceptr(const Memory&)>& resolve);
  // Nothing uses it any more. NotFound if there is none.
  absl::Status Remove(std::uint64_t id);

  // The driver's value, or why there is none.
  absl::StatusOr<std::uint64_t> ValueOf(std::uint64_t id) const;

  // AlreadyExists: another object is known by this value, and is another one here.
  // FailedPrecondition: it can neither be translated nor be made with that value here.
  absl::Status Publish(std::uint64_t id, std::uint64_t known_as);
  // Whether some read memory, not arrays.
  bool reads_memory() const;
  bool empty() const { return objects_.empty(); }
  // Whether some published value is not the object's on this GPU.
  bool has_moved() const { return moved_ != 0; }
  // The object's value on this GPU; any other number is given back as it is.
  std::uint64_t Translate(std::uint64_t known_as) const {
    const auto found = here_.find(known_as);
    return found == here_.end() ? known_as : found->second;
  }

 private:
  struct Object {
    absl::Status status;
    CUDA_RESOURCE_DESC resource{};
    std::optional<CUDA_TEXTURE_DESC> texture;  // a surface has none
    std::optional<CUDA_RESOURCE_VIEW_DESC> view;
    Memory memory;
    std::uint64_t value = 0;
    std::uint64_t known_as = 0;  // 0: not published
  };

  bool HasRoom() const;
  void Add(std::uint64_t id, Object object);
  CUresult Make(const Object& object, std::uint64_t& value) const;
  void Destroy(const Object& object, std::uint64_t value) const;
  // Makes one more of the driver's objects, of that value. False if the driver gives none.
  bool MakeAs(std::uint64_t value, const Object& object) const;

  const Device& device_;
  std::map<std::uint64_t, Object> objects_;
  std::map<std::uint64_t, std::uint64_t> here_;  // by published value
  std::size_t moved_ = 0;                        // that differ
};

}  // namespace torpor::executor
