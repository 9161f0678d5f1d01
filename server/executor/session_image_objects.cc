#include "server/executor/session_image_objects.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace torpor::executor {
namespace {

constexpr std::size_t kMostObjects = 1u << 20;

absl::Status UnknownObject(std::uint64_t id) {
  return absl::NotFoundError(absl::StrCat("the session has no texture or surface object ", id));
}

}  // namespace

SessionImageObjects::~SessionImageObjects() {
  for (const auto& [id, object] : objects_) Destroy(object);
}

bool SessionImageObjects::HasRoom() const { return objects_.size() < kMostObjects; }

void SessionImageObjects::Destroy(const Object& object) const {
  if (!object.status.ok()) return;
  if (object.is_texture) {
    device_.driver().TexObjectDestroy(object.value);
  } else {
    device_.driver().SurfObjectDestroy(object.value);
  }
}

void SessionImageObjects::AddTexture(std::uint64_t id, const CUDA_RESOURCE_DESC& resource,
                                     const CUDA_TEXTURE_DESC& texture,
                                     const CUDA_RESOURCE_VIEW_DESC* view) {
  if (!HasRoom() || objects_.contains(id)) return;
  CUtexObject value = 0;
  const CUresult made = device_.driver().TexObjectCreate(&value, &resource, &texture, view);
  objects_[id] = {device_.Status(made, "cuTexObjectCreate"), true, value};
}

void SessionImageObjects::AddSurface(std::uint64_t id, const CUDA_RESOURCE_DESC& resource) {
  if (!HasRoom() || objects_.contains(id)) return;
  CUsurfObject value = 0;
  const CUresult made = device_.driver().SurfObjectCreate(&value, &resource);
  objects_[id] = {device_.Status(made, "cuSurfObjectCreate"), false, value};
}

void SessionImageObjects::AddBroken(std::uint64_t id, absl::Status why) {
  if (HasRoom() && !objects_.contains(id)) objects_[id].status = std::move(why);
}

absl::Status SessionImageObjects::Remove(std::uint64_t id) {
  const auto found = objects_.find(id);
  if (found == objects_.end()) return UnknownObject(id);
  Destroy(found->second);
  const auto here = here_.find(found->second.known_as);
  if (here != here_.end()) {
    moved_ -= here->second != here->first ? 1 : 0;
    here_.erase(here);
  }
  objects_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> SessionImageObjects::ValueOf(std::uint64_t id) const {
  const auto found = objects_.find(id);
  if (found == objects_.end()) return UnknownObject(id);
  if (!found->second.status.ok()) return found->second.status;
  return found->second.value;
}

absl::Status SessionImageObjects::Publish(std::uint64_t id, std::uint64_t known_as) {
  const auto found = objects_.find(id);
  if (found == objects_.end()) return UnknownObject(id);
  Object& object = found->second;
  if (object.known_as != 0) return absl::AlreadyExistsError("the object is published");
  // What could not be made here is no object: a kernel that uses it ends with an error.
  const std::uint64_t here = object.status.ok() ? object.value : 0;
  const auto [known, is_new] = here_.emplace(known_as, here);
  if (!is_new) {
    // Where the driver numbers textures and surfaces apart.
    if (known->second == here && here == known_as) return absl::OkStatus();
    return absl::AlreadyExistsError("a texture and a surface of one value differ on this GPU");
  }
  object.known_as = known_as;
  moved_ += here != known_as ? 1 : 0;
  return absl::OkStatus();
}

}  // namespace torpor::executor
