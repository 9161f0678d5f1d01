#include "server/controller/model/image_state.h"

#include <utility>

namespace torpor::server {

void ImageState::SettleResidency() { residency_ = gpu_ ? Residency::kResident : Residency::kHost; }

void ImageState::EndLeaving(bool is_dropped) {
  if (is_dropped) gpu_.reset();
  SettleResidency();
}

void ImageState::Forget() {
  gpu_.reset();
  replicas_.clear();
  behind_.clear();
  going_.clear();
  source_.reset();
  SettleResidency();
}

void ImageState::BecomeReplica() {
  replicas_.insert(*gpu_);
  gpu_.reset();
  SettleResidency();
}

void ImageState::ForgetReplica(GpuIndex gpu) {
  replicas_.erase(gpu);
  behind_.erase(gpu);
  going_.erase(gpu);
  if (source_ == gpu) source_.reset();
}

void ImageState::BeginArrival(GpuIndex gpu) {
  is_arriving_ = true;
  arrives_at_ = gpu;
}

void ImageState::Land(GpuIndex gpu) {
  gpu_ = gpu;
  replicas_.erase(gpu);
  behind_.erase(gpu);
  going_.erase(gpu);
  SettleResidency();
}

std::vector<ImageState::Task> ImageState::EndArrival() {
  is_arriving_ = false;
  return std::exchange(after_arrival_, {});
}

bool ImageState::LoseExecutor(GpuIndex gpu) {
  peer_holders_.erase(gpu);
  replicas_.erase(gpu);
  behind_.erase(gpu);
  going_.erase(gpu);
  if (gpu_ != gpu) return false;
  gpu_.reset();
  SettleResidency();
  return true;
}

void ImageState::NoteLease(LeaseId lease, bool is_explicit) {
  is_replay_due_ = false;
  const bool was_saved = changes_ == Changes::kSaved || changes_ == Changes::kChangedAgain;
  // A function that loads its model in its first request must not have to do so again.
  if (!is_explicit || !was_saved) unsaved_lease_ = lease;
  changes_ = was_saved ? Changes::kChangedAgain : Changes::kNeverSaved;
  NoteReplicasBehind();
}

void ImageState::NoteSaved(LeaseId unsaved_before) {
  if (unsaved_lease_ == unsaved_before) unsaved_lease_ = {};
  changes_ = Changes::kSaved;
}

void ImageState::Restore(bool was_saved, bool replays) {
  is_replay_due_ = replays;
  changes_ = was_saved ? Changes::kSaved : Changes::kNeverChanged;
}

bool ImageState::has_changes() const {
  return changes_ == Changes::kNeverSaved || changes_ == Changes::kChangedAgain;
}

}  // namespace torpor::server
